"""`python -m benchmarks.storage`: what a turn's four commits cost on each kind of database.

Each move runs as its own transaction: one caller after the other, and 32
callers at once. Nothing but the database is at work.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from benchmarks.figures import quantile, show
from bot.clock import SystemClock
from bot.delivery.advance import Result, Way, advance
from bot.domain.delivery import Sent
from bot.domain.message import Address, ChannelName, ChatKind, Inbound, InboundKind, Sender
from bot.domain.ports import Recipient
from bot.domain.reply import PartBody, PartKind
from bot.domain.run import Run
from bot.domain.terms import Terms
from bot.intake.record import Arrival, record_event
from bot.leases.runtime import Runtime
from bot.schedule import CronCalendar
from bot.texts import Words
from channels.console import ConsoleChannel
from storage import accounts, chats, holders, outbox, replies, runs
from storage.engine.database import Database, DatabaseSettings
from storage.engine.tx import Tx
from storage.holders import Identity
from storage.notify import Wakeups
from storage.outbox import Attempt, Part
from storage.runs import Claimant
from storage.schema.migrate import upgrade
from tests.servers import Postgres

_CALLERS = 32
_numbers = count(1)


class Turns:
    """One process's moves on a database, without an agent or a provider."""

    def __init__(self, url: str) -> None:
        upgrade(url)
        clock = SystemClock()
        self.db = Database(DatabaseSettings(url), clock)
        self.account = self.db.now_sync(accounts.ensure, ChannelName("console"), "local").id
        identity = Identity("bench/1", clock.token(), "bench", 1, "all")
        self.by = Claimant(self.db.now_sync(holders.register, identity), 3_600.0, 900.0)
        self.rt = Runtime(
            db=self.db,
            clock=clock,
            channels={self.account: ConsoleChannel(None)},
            terms=Terms(),
            words=Words.load(),
            wakeups=Wakeups(clock),
            calendar=CronCalendar("UTC"),
        )

    async def intake(self, by: Claimant | None) -> Run:
        """A message of a new person, up to its run."""
        number = next(_numbers)
        message = Inbound(
            request_id=f"bench-{number}",
            address=Address(f"person-{number}"),
            chat_kind=ChatKind.PRIVATE,
            kind=InboundKind.TEXT,
            text="hello",
            sender=Sender(f"person-{number}", "Ada"),
            provider_id=f"{number}",
        )
        arrival = Arrival(self.account, '{"text": "hello"}')
        recorded = await self.db.write(record_event, self.rt, arrival, message, by)
        assert recorded.run is not None
        return recorded.run

    async def claim(self) -> Run:
        """One run that is ready."""
        [run] = await self.db.write(runs.claim, self.by, [self.account], 1)
        return run

    async def store(self, run: Run) -> Part:
        """The reply and its one part, which is begun."""
        return await self.db.write(_store, run)

    async def advance(self, run: Run, part: Part) -> None:
        """The receipt, the end of the run, and the next of its chat."""
        to = Recipient(Address("person"), ChatKind.PRIVATE)
        way = Way(self.rt, run, to, placed=True, calling=lambda _part: False)
        result = Result(Attempt(part.id, part.attempts), Sent(f"receipt-{part.id}"))
        await self.db.write(advance, way, result)


def _store(tx: Tx, run: Run) -> Part:
    chat = chats.lock(tx, run.chat)
    runs.mark_replied(tx, run.claim)
    replies.store(tx, run.id, "hi", '{"text": "hi"}', run.attempts)
    to = outbox.PartOwner(run.account, chat.id, run.id)
    body = PartBody("hi", '{"text": "hi"}')
    [part] = outbox.store_parts(tx, to, PartKind.REPLY, [body], run.holder)
    return part


T = TypeVar("T")


async def _timed(name: str, jobs: Sequence[Callable[[], Awaitable[T]]], callers: int) -> list[T]:
    """Run the jobs, so many at a time; print their rate and latencies."""
    left, took, results = iter(jobs), list[float](), list[T]()

    async def caller() -> None:
        for job in left:
            began = time.perf_counter()
            results.append(await job())
            took.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    rate = len(jobs) / (time.perf_counter() - began)
    p50, p99 = quantile(took, 0.5) * 1000, quantile(took, 0.99) * 1000
    show(name, f"{rate:7.0f}/s   p50 {p50:6.2f} ms   p99 {p99:6.2f} ms")
    return results


async def measure(name: str, url: str, turns: int) -> None:
    """Every move, one caller and many."""
    bench = Turns(url)
    try:
        for callers in (1, _CALLERS):
            await _measure(bench, f"{name}, {callers} at once", turns, callers)
    finally:
        bench.db.close()


async def _measure(bench: Turns, name: str, turns: int, callers: int) -> None:
    born = await _timed(
        f"{name}: intake, born running", [partial(bench.intake, bench.by)] * turns, callers
    )
    await _timed(f"{name}: intake, ready", [partial(bench.intake, None)] * turns, callers)
    await _timed(f"{name}: claim of one", [bench.claim] * turns, callers)
    stored = await _timed(
        f"{name}: store the reply", [partial(bench.store, run) for run in born], callers
    )
    by_id = {run.id: run for run in born}
    await _timed(
        f"{name}: receipt, end, next",
        [partial(bench.advance, by_id[part.run or 0], part) for part in stored],
        callers,
    )


async def _run(turns: int) -> None:
    with tempfile.TemporaryDirectory() as folder, Postgres(durable=True) as server:
        await measure("SQLite", f"sqlite:///{Path(folder) / 'bench.db'}", turns)
        await measure("PostgreSQL", server.url(), turns)


def main() -> None:
    """Read the options and run."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.storage", description=__doc__)
    options.add_argument("--turns", type=int, default=300, help="of each kind")
    asyncio.run(_run(options.parse_args().turns))


if __name__ == "__main__":
    main()
