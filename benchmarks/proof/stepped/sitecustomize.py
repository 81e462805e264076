"""A wall clock that can be set under running processes: every Python that starts with this folder
on its path tells the time as the file in `PROOF_CLOCK` says, so many seconds off the machine's.

Nobody has to be root for it, and no other program notices. Monotonic clocks stay as they are, as
they do when a machine's clock is set.
"""

import mmap
import os
import struct
import time


def _step(path: str) -> None:
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib is a tenth of a start
        off = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    machine, machine_ns, machine_of = time.time, time.time_ns, time.clock_gettime

    def seconds() -> float:
        return float(struct.unpack_from("d", off)[0])

    def stepped_of(clock: int) -> float:
        return machine_of(clock) + (seconds() if clock == time.CLOCK_REALTIME else 0.0)

    time.time = lambda: machine() + seconds()
    time.time_ns = lambda: machine_ns() + round(seconds() * 1e9)
    time.clock_gettime = stepped_of


if "PROOF_CLOCK" in os.environ:
    _step(os.environ["PROOF_CLOCK"])
