"""`python -m benchmarks.copying`: `answerback db copy` of many rows, there and back again.

A file of SQLite is filled, copied to PostgreSQL, and from there to a new file, by the command as an
operator calls it. Of each copy are told: rows and rows a second, each row copied and compared; the
CPU and the peak memory of the command, without the server.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

from benchmarks.past import Size, grow
from benchmarks.report import show
from benchmarks.stage import new_database
from storage.schema.migrate import upgrade
from tests.e2e.processes import PROGRAM
from tests.servers import Postgres

_ROWS_OF_A_CHAT = 2
_ROWS_OF_A_RUN = 3
_RUNS_OF_A_CHAT = 6


def measure(rows: int) -> None:
    """Fill, copy there, copy back."""
    chats = rows // (_ROWS_OF_A_CHAT + _RUNS_OF_A_CHAT * _ROWS_OF_A_RUN)
    size = Size(chats, ended=(rows - chats * _ROWS_OF_A_CHAT) // _ROWS_OF_A_RUN)
    with Postgres(durable=True) as server, tempfile.TemporaryDirectory() as folder:
        first, there = f"sqlite:///{Path(folder) / 'first.db'}", new_database(server)
        # Elsewhere: a child's peak begins with what its parent had.
        filling = get_context("spawn").Process(target=_fill, args=(first, size))
        filling.start()
        filling.join()
        size_mb = (Path(folder) / "first.db").stat().st_size / 1e6
        show(str(size), f"a file of {size_mb:,.0f} MB")
        back = f"sqlite:///{Path(folder) / 'back.db'}"
        for name, source, target in (
            ("SQLite to PostgreSQL", first, there),
            ("PostgreSQL to SQLite", there, back),
        ):
            show(name, _copied(source, target, rows))


def _fill(url: str, size: Size) -> None:
    upgrade(url)
    grow(url, Size(chats=0), size)


def _copied(source: str, target: str, rows: int) -> str:
    environment = {**os.environ, "DATABASE_URL": source}
    began = time.monotonic()
    child = os.posix_spawn(PROGRAM, [str(PROGRAM), "db", "copy", target], environment)
    _, status, used = os.wait4(child, 0)
    took = time.monotonic() - began
    if status:
        raise SystemExit(f"it ended with {os.waitstatus_to_exitcode(status)}")
    cpu = used.ru_utime + used.ru_stime
    return (
        f"{took:.0f} s, {rows / took:,.0f} rows a second, {cpu:.0f} s of CPU, "
        f"{used.ru_maxrss / 1000:.0f} MB at most"
    )


def main() -> None:
    """Read the options and measure."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.copying", description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    measure(options.parse_args().rows)


if __name__ == "__main__":
    main()
