"""Ten thousand turns in flight in one process: the cost of each while its agent waits.

`python -m benchmarks.turns DATABASE_URL COUNT`
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import uvloop

from benchmarks import pipeline
from benchmarks.job import Job, finish, ready, spread
from benchmarks.meters import resident_bytes
from benchmarks.process import message, started
from benchmarks.report import Figures, progress
from benchmarks.scale import Scale
from benchmarks.stage import Servers, new_database
from bot.api import Turn
from bot.domain.errors import DatabaseUnavailable
from bot.intake.arrival import Arrival
from bot.runs.shutdown import shut_down
from bot.wiring import Process
from storage.schema.migrate import upgrade

_TAKERS = 100
_RENEWALS = 20


async def turns(servers: Servers, scale: Scale) -> Figures:
    """So many turns, in a process of its own on each database."""
    with tempfile.TemporaryDirectory(prefix="answerback-bench-") as folder:
        places = {
            "postgresql": new_database(servers.postgres),
            "sqlite": f"sqlite:///{Path(folder) / 'bench.db'}",
        }
        return {kind: await _measured(url, scale.in_flight) for kind, url in places.items()}


async def _measured(url: str, count: int) -> Figures:
    await asyncio.to_thread(upgrade, url)
    command = [sys.executable, "-m", "benchmarks.turns", url, str(count)]
    async with pipeline.started(command) as program:
        await program.ready()
        program.go()
        found = await program.result()
        program.go()
    progress(", ".join([f"turns, {count} in flight", *(f"{k} {v:.1f}" for k, v in found.items())]))
    return {"in_flight": count, **found}


async def main(url: str, count: int) -> None:
    """Take so many in, and let them all go at once."""
    let_go, thinking, shown = asyncio.Event(), asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def wait(turn: Turn) -> str:
        thinking.release()
        await let_go.wait()
        return turn.text

    def show(_text: str) -> None:
        shown.release()

    async with started("both", url, "", Job(concurrency=count), show, wait) as process:
        await asyncio.to_thread(ready)
        gc.collect()
        before = resident_bytes(os.getpid())
        await asyncio.gather(*(_take(process, range(n, count, _TAKERS)) for n in range(_TAKERS)))
        await _times(thinking, count)
        memory = resident_bytes(os.getpid()) - before
        renewed = await _renewals(process)
        began = time.monotonic()
        let_go.set()
        await _times(shown, count)
        answered = time.monotonic() - began
        await asyncio.to_thread(
            finish, {"kb_a_turn": memory / 1000 / count, "all_answered_s": answered, **renewed}
        )
        await shut_down(process.ctx, process.worker, 30.0)


async def _take(process: Process, numbers: range) -> None:
    [account] = process.endpoints
    for n in numbers:
        taken = False
        while not taken:
            with suppress(DatabaseUnavailable):  # As a platform delivers again after a 503.
                await process.intake.take(Arrival(account, "{}"), (message(n, n, "hello"),))
                taken = True


async def _times(signal: asyncio.Semaphore, count: int) -> None:
    for _ in range(count):
        await signal.acquire()


async def _renewals(process: Process) -> dict[str, float]:
    """Waits for a renewal of the lease, and its CPU."""
    seconds, cpu = list[float](), time.process_time()
    for _ in range(_RENEWALS):
        began = time.monotonic()
        await process.lease.renew()
        seconds.append(time.monotonic() - began)
    cpu_ms = 1000 * (time.process_time() - cpu) / _RENEWALS
    return {"renewal_cpu_ms": cpu_ms, **{f"renewal_{k}": v for k, v in spread(seconds).items()}}


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
