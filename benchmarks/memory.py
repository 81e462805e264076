"""`python -m benchmarks.memory`: what is left in memory of chats that have their answer."""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
from pathlib import Path

from benchmarks.figures import show
from benchmarks.pipeline import answered, take_in
from bot.runs.shutdown import shut_down
from bot.settings import Settings
from bot.wiring import Parts, Process, running
from tests.e2e.containers import lengths

_STEPS = (0.25, 0.5, 1.0)
_MAY_GROW = 20.0
"""MB that the last three quarters of the chats may add."""


def resident() -> float:
    """MB of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


async def run(chats: int) -> float:
    """One message from each of so many chats; MB that the later ones added."""
    sizes: list[float] = []
    with tempfile.TemporaryDirectory(prefix="answerback-bench-") as folder:
        settings = Settings(_env_file=None, database_url=f"sqlite:///{folder}/bench.db")
        async with running(settings, parts=Parts(terminal=lambda _text: None)) as process:
            done = 0
            for step in _STEPS:
                numbers = range(done, int(chats * step))
                await take_in(process, numbers, chats)
                await answered(process)
                done = numbers.stop
                sizes.append(resident())
                show(f"{done} chats", f"{sizes[-1]:.1f} MB   {await _kept(process)}")
            await shut_down(process.ctx, process.worker, 5.0)
    return sizes[-1] - sizes[0]


async def _kept(process: Process) -> str:
    """The longest containers, once everything is idle."""
    await process.repair()
    gc.collect()
    longest = sorted(lengths(process).items(), key=lambda item: -item[1])[:3]
    return "longest: " + ", ".join(f"{path.rpartition('.')[2]} {n}" for path, n in longest)


def main() -> None:
    """Read the options and run; exit code 1 when memory grew with the chats."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    options.add_argument("--chats", type=int, default=20_000)
    grown = asyncio.run(run(options.parse_args().chats))
    show("growth after the first quarter", f"{grown:+.1f} MB")
    raise SystemExit(1 if grown > _MAY_GROW else 0)


if __name__ == "__main__":
    main()
