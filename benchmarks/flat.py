"""Costs that must stay as they are while a database grows: a turn's moves, every look that a
process takes by itself, and an operator's; and intake while words are deleted beside it."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.job import Job, quantile, spread
from benchmarks.past import BUSY_CHATS, Size, grow
from benchmarks.process import message, started
from benchmarks.report import Figures, progress
from benchmarks.scale import Scale
from benchmarks.stage import Servers, new_database
from bot.intake.accept import Intake
from bot.intake.arrival import Arrival
from bot.operations import chats
from bot.operations.actions import Operator
from bot.operations.reports.stuck import find_stuck
from bot.runs.shutdown import shut_down
from bot.supervisor import Supervisor
from bot.wiring import Process
from storage.retention import delete_old
from storage.schema.migrate import upgrade
from storage.views.health.gauges import read_rates
from storage.views.history import ChatBefore, history
from tests.servers import Postgres

_UNTIMED = {"wakeups"}
"""Waits for others, and asks nothing."""
Look = Callable[[], Awaitable[object]]


async def flat(_servers: Servers, scale: Scale) -> Figures:
    """Milliseconds of everything at every size, on both databases."""
    with offered() as urls:
        found = {kind: await _measure(url, scale) for kind, url in urls.items()}
        return {
            "sizes": [str(size) for size in scale.sizes],
            **found,
            "beside": {k: await _beside(url, 3 * scale.flat_times) for k, url in urls.items()},
        }


@contextmanager
def offered() -> Iterator[Mapping[str, str]]:
    """An empty database of each kind, by its kind. PostgreSQL does not wait for the disk, whose
    moods are larger than what is looked for."""
    with (
        Postgres(durable=True, settings=("fsync=off",)) as postgres,
        tempfile.TemporaryDirectory(prefix="answerback-bench-") as folder,
    ):
        yield {
            "postgresql": new_database(postgres),
            "sqlite": f"sqlite:///{Path(folder) / 'bench.db'}",
        }


async def _measure(url: str, scale: Scale) -> Figures:
    await asyncio.to_thread(upgrade, url)
    found: dict[str, list[float]] = {}
    before = Size(chats=0)
    for number, size in enumerate(scale.sizes):
        await asyncio.to_thread(grow, url, before, size)
        costs = await _costs(url, scale.flat_times, number)
        progress(f"{url.partition(':')[0]}, {size}: {_line(costs)}")
        for name, cost in costs.items():
            found.setdefault(name, []).append(cost)
        before = size
    return {
        name: {"ms": [round(c, 3) for c in costs], "growth": max(costs) / costs[0]}
        for name, costs in found.items()
    }


def _line(costs: dict[str, float]) -> str:
    return ", ".join(f"{name} {cost:.1f}" for name, cost in costs.items())


async def _costs(url: str, times: int, series: int) -> dict[str, float]:
    """Median milliseconds of everything, with the database as it is."""
    shown = asyncio.Event()

    def show(_text: str) -> None:
        shown.set()

    with looks_noted() as looks:
        async with started("both", url, "", Job(), show) as process:
            people = _People(process, shown, series * 1_000_000)
            seconds: dict[str, list[float]] = {}
            for _ in range(times):
                for name, taken in (await people.turn()).items():
                    seconds.setdefault(name, []).append(taken)
            for name, look in (looks | people.looks()).items():
                if name not in _UNTIMED:
                    seconds[f"look: {name}"] = [await _timed(look) for _ in range(times)]
            await shut_down(process.ctx, process.worker, 5.0)
    return {name: quantile(taken, 0.5) * 1000 for name, taken in seconds.items()}


@contextmanager
def looks_noted() -> Iterator[dict[str, Look]]:
    """Every task that a process begins meanwhile, by its name."""
    noted: dict[str, Look] = {}

    def noting(begin: Callable[..., None], place: int) -> Callable[..., None]:
        def begun(tasks: Supervisor, name: str, *args: Any, **kwargs: Any) -> None:
            noted[name] = args[place]
            begin(tasks, name, *args, **kwargs)

        return begun

    with (
        patch.object(Supervisor, "every", noting(Supervisor.every, 1)),
        patch.object(Supervisor, "repeat", noting(Supervisor.repeat, 0)),
    ):
        yield noted


@dataclass
class _People:
    """Those who have said all that there is, and go on. `number` is their next message's."""

    process: Process
    shown: asyncio.Event
    number: int

    async def turn(self) -> dict[str, float]:
        """Seconds of one message's way: taken, answered, settled; and of one that a worker has to
        claim, from its acknowledgement to its answer."""
        began = time.monotonic()
        await self._say(self.process.intake)
        taken = time.monotonic()
        await self.shown.wait()
        answered = time.monotonic()
        await self._settled()
        settled = time.monotonic()
        await self._say(Intake(self.process.rt, None, self.process.tasks))
        handed_on = time.monotonic()
        await self.shown.wait()
        claimed = time.monotonic() - handed_on
        await self._settled()
        return {
            "intake": taken - began,
            "reply": answered - taken,
            "settle": settled - answered,
            "claim": claimed,
        }

    def looks(self) -> dict[str, Look]:
        """The other questions, each by its name."""
        db, limit = self.process.rt.db, self.process.rt.terms.work.history_runs

        async def last_turns() -> None:
            await db.read(history, [ChatBefore(await self.first_chat(), -1)], limit)

        async def stuck() -> None:
            await db.read(find_stuck, 60.0, self.process.lease.terms.seconds)

        async def top() -> None:
            await db.read(read_rates, 60.0)

        return {
            "history": last_turns,
            "readiness": self.process.readiness,
            "stuck": stuck,
            "top": top,
        }

    async def first_chat(self) -> int:
        """The chat of the first of them."""
        [(chat,)] = await self.process.rt.db.read(lambda tx: tx.run("SELECT min(id) FROM chats"))
        return int(chat)

    async def _say(self, intake: Intake) -> None:
        self.shown.clear()
        self.number += 1
        [account] = self.process.endpoints
        said = message(self.number % BUSY_CHATS, self.number, "hello")
        await intake.take(Arrival(account, '{"text": "hello"}'), (said,))

    async def _settled(self) -> None:
        # The tasks themselves: looking again and again would slow down the threads they wait for.
        if turns := [t for t in asyncio.all_tasks() if t.get_name().startswith("run-")]:
            await asyncio.wait(turns)


async def _beside(url: str, times: int) -> dict[str, dict[str, float]]:
    """Waits of intake, alone and while words are deleted as fast as that goes: those of a chat
    that goes on writing, and all that are old."""
    shown = asyncio.Event()

    def show(_text: str) -> None:
        shown.set()

    async with started("both", url, "", Job(), show) as process:
        people = _People(process, shown, 900_000_000)

        async def nothing() -> None:
            return

        async def forget() -> None:
            await chats.forget(process.rt, Operator("bench"), await people.first_chat())

        async def delete_all() -> None:
            while await process.rt.db.write(delete_old, 1.0):
                pass

        found = {}
        for name, work in (("alone", nothing), ("forget", forget), ("retention", delete_all)):
            beside = asyncio.create_task(work())
            seconds = [(await people.turn())["intake"] for _ in range(times)]
            beside.cancel()
            await asyncio.gather(beside, return_exceptions=True)
            found[name] = {**spread(seconds), "longest_ms": 1000 * max(seconds)}
            progress(f"{url.partition(':')[0]}, intake beside {name}: {_line(found[name])}")
        await shut_down(process.ctx, process.worker, 5.0)
    return found


async def _timed(look: Look) -> float:
    began = time.monotonic()
    async with asyncio.timeout(60):
        await look()
    return time.monotonic() - began
