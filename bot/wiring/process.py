"""One process of Answerback, put together: what it is made of, and in which order it starts
and stops."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from bot.clock import SystemClock
from bot.delivery.context import WorkerContext
from bot.delivery.inflight import Sends
from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import ChannelName
from bot.domain.ports import Channel, Clock
from bot.domain.turn import Agent
from bot.intake.accept import Intake
from bot.intake.backfill import CatchUp
from bot.intake.polling import Poller
from bot.leases import recovery
from bot.leases.checkpoints import Reached, nowhere
from bot.leases.keeper import LeaseKeeper
from bot.leases.runtime import Runtime
from bot.loop_watchdog import pulse
from bot.observability import Check
from bot.observability.context import held_by
from bot.observability.logs import report_from_loop
from bot.observability.tracing import Tracer
from bot.runs.reminders import fire_due
from bot.runs.worker import Worker
from bot.schedule import Almanac, Chore, Schedule
from bot.settings import Settings, TelegramMode
from bot.texts import Words
from bot.wiring.agents import Hired, hire
from bot.wiring.channels import Configured, configure
from bot.wiring.metrics import measure
from bot.wiring.rate_limits import pacers
from bot.wiring.tracing import tracer_of
from storage import accounts, holders, runs
from storage.accounts import Account
from storage.engine.database import Database, DatabaseSettings
from storage.holders import Identity
from storage.notify import Wakeups
from storage.schema.migrate import upgrade

if TYPE_CHECKING:
    from bot.wiring.telegram import TelegramUpdates

_log = logging.getLogger("answerback")
_SWEEP_EVERY = 5.0
_CLAIMS_WITHIN = 15.0
_REPAIR_EVERY = 60.0
_REMIND_EVERY = 1.0
_PROBE_EVERY = 15.0


class Role(StrEnum):
    """What a process does."""

    ALL = "all"
    WEB = "web"
    WORKER = "worker"


@dataclass(slots=True)
class Process:
    """A running process's parts. Made by `running`."""

    settings: Settings
    role: Role
    rt: Runtime
    lease: LeaseKeeper
    ctx: WorkerContext
    worker: Worker | None
    intake: Intake
    channels: Configured
    ids: dict[str, int]
    updates: TelegramUpdates | None
    schedule: Schedule = field(default_factory=Schedule)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    last_sweep: float = 0.0

    async def readiness(self) -> Sequence[Check]:
        """Whether this process can do its job, and what keeps it from it."""
        checks = [Check("lease", self.lease.holds(), f"{self.lease.remaining():.1f} s left")]
        try:
            async with asyncio.timeout(2.0):
                age = await self.rt.db.read(runs.oldest_due)
        except DatabaseUnavailable as error:
            return [*checks, Check("database", False, str(error))]
        except TimeoutError:
            return [*checks, Check("database", False, "no answer in 2 s")]
        since = self.rt.clock.monotonic() - self.last_sweep
        fresh = since < 4 * _SWEEP_EVERY + 2 * self.lease.terms.heartbeat
        said = "nothing is due" if age is None else f"the oldest due run waits {age:.0f} s"
        return [
            *checks,
            Check("database", True, "answers"),
            Check("sweep", fresh, f"{since:.0f} s ago"),
            *self._claims(),
            Check("due", True, said),
        ]

    def _claims(self) -> Sequence[Check]:
        if self.worker is None or self.worker.draining:
            return []
        since = self.worker.claimless
        return [Check("claims", since < _CLAIMS_WITHIN, f"last worked {since:.0f} s ago")]

    async def sweep(self) -> None:
        """One recovery pass; a database that is away is noted and waited for."""
        try:
            await recovery.sweep(self.rt, self.lease)
            self.last_sweep = self.rt.clock.monotonic()
        except DatabaseUnavailable as error:
            _log.warning("recovery pass put off: %s", error)

    async def remind(self) -> None:
        """Turn the reminders that are due into messages; missed beats fall together."""
        try:
            await fire_due(self.rt)
        except DatabaseUnavailable as error:
            _log.warning("reminders put off: %s", error)

    async def repair(self) -> None:
        """The slower repairs."""
        try:
            await recovery.repair(self.rt)
        except DatabaseUnavailable as error:
            _log.warning("repair put off: %s", error)
        for pacer in self.ctx.pacers.values():
            pacer.forget_idle()

    async def begin(self) -> None:
        """Register, recover, and start everything that runs by itself."""
        await self.lease.begin()
        await self.sweep()
        await self.repair()
        await self.share_pace()
        await measure(self.rt, self.lease, self.schedule, lambda: self.last_sweep)
        self._schedule()
        self._start("wakeups", self.rt.wakeups.relay())
        if self.worker is not None:
            for name, loop in self.worker.loops():
                self._start(name, loop)
        if self.updates is not None:
            await self.updates.meet(self.rt, self.ids["telegram"])
            self._start("introduce", self.updates.introduce(self.rt, self.ids["telegram"]))
            if self.settings.mode is TelegramMode.POLLING and self.role is not Role.WORKER:
                poller = Poller(
                    self.rt, self.lease, self.intake, self.ids["telegram"], self.updates
                )
                self._start("poll", poller.run())

        if self.channels.whatsapp is not None:
            records, account = self.channels.whatsapp, self.ids["whatsapp"]
            catch_up = CatchUp(self.rt, self.lease, self.intake, account, records)
            self._start("catch-up", catch_up.run())

    def _schedule(self) -> None:
        beat = self.lease.terms.heartbeat
        self.schedule.add(Chore("heartbeat", beat, self.lease.renew))
        self.schedule.add(Chore("watch", max(0.1, beat / 5), self._watch))
        self.schedule.add(Chore("sweep", min(_SWEEP_EVERY, beat), self.sweep))
        self.schedule.add(Chore("repair", _REPAIR_EVERY, self.repair))
        self.schedule.add(Chore("reminders", _REMIND_EVERY, self.remind))
        self.schedule.add(Chore("share", beat, self.share_pace))
        if self.updates is not None:
            self.schedule.add(Chore("probe", _PROBE_EVERY, self._probe))
        self.schedule.start()

    async def share_pace(self) -> None:
        """Learn how many processes the limits of a platform are divided between."""
        try:
            count = await self.rt.db.read(holders.live_workers, self.lease.terms.seconds)
        except DatabaseUnavailable:
            return
        for pacer in self.ctx.pacers.values():
            pacer.share(count)

    async def _probe(self) -> None:
        if self.updates is not None:
            await self.updates.probe(self.rt, self.ids["telegram"])

    async def _watch(self) -> None:
        self.lease.watch()

    def _start(self, name: str, coroutine: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(coroutine, name=name)
        task.add_done_callback(_report)
        self.tasks.append(task)

    async def end(self) -> None:
        """Stop what runs by itself, and let go of what no hand-over ended, as the death of
        the process would."""
        self.schedule.stop()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if self.worker is not None:
            self.worker.abandon()
        self.ctx.sends.abandon()


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.error("the %s task broke", task.get_name(), exc_info=task.exception())


@dataclass(frozen=True, slots=True)
class Parts:
    """What takes the place of production's parts: a terminal, an agent, a clock, a database,
    and who is told of checkpoints."""

    terminal: Callable[[str], None] | None = None
    agent: Agent | None = None
    clock: Clock = field(default_factory=SystemClock)
    reached: Reached = nowhere
    open_database: Callable[[DatabaseSettings, Clock], Database] = Database
    tracer: Tracer | None = None


@asynccontextmanager
async def running(
    settings: Settings, role: Role = Role.ALL, parts: Parts | None = None
) -> AsyncIterator[Process]:
    """A process that works, from its first renewal until the body ends. The body hands over
    (`bot.runs.shutdown`) before it leaves; without that, leaving is like dying.

    Raises ConfigurationError, DatabaseUnavailable.
    """
    parts = parts or Parts()
    async with AsyncExitStack() as stack:
        asyncio.get_running_loop().set_exception_handler(report_from_loop)
        tracer = parts.tracer or tracer_of(settings, parts.clock)
        stack.push_async_callback(asyncio.to_thread, tracer.close)
        await asyncio.to_thread(upgrade, settings.database_url)
        place = DatabaseSettings(settings.database_url, pool=settings.database_pool)
        db = parts.open_database(place, parts.clock)
        stack.callback(db.close)
        words = _words(settings)
        channels = configure(settings, parts.clock, words, parts.terminal)
        rows = await _accounts(db, channels.all())
        for channel in channels.all():
            await channel.open()
            stack.push_async_callback(channel.close)
        rt = Runtime(
            db=db,
            clock=parts.clock,
            channels={rows[c.name].id: c for c in channels.all()},
            carriers={rows[c.name].id: c for c in channels.carriers()},
            terms=settings.terms(),
            words=words,
            wakeups=Wakeups(parts.clock, settings.redis_url or None),
            calendar=Almanac(settings.timezone),
            reached=parts.reached,
            tracer=tracer,
        )
        hired = Hired(parts.agent) if parts.agent else hire(settings, rt.words, parts.clock)
        stack.push_async_callback(hired.close)
        lease = LeaseKeeper(
            rt.db,
            rt.clock,
            rt.terms.work.lease,
            _identity(settings, rt.clock, role),
            stack.enter_context(pulse()).stood,
        )
        rt = replace(rt, may_judge=lease.may_judge)
        paced = pacers(rt, settings.redis_url, stack)
        ctx = WorkerContext(rt, lease, Sends(rt, lease, paced), hired.agent, paced)
        process = _process(settings, role, ctx, channels, rows)
        held_by(lambda: process.lease.name)
        try:
            await process.begin()
            yield process
        finally:
            await process.end()


def _words(settings: Settings) -> Words:
    return Words.load(settings.texts_file, settings.language, word_commands=settings.command_words)


async def _accounts(db: Database, channels: Sequence[Channel]) -> Mapping[ChannelName, Account]:
    """The rows of the accounts, up again: a start may come with what was wrong put right."""
    rows = {c.name: await db.write(accounts.ensure, c.name, c.account) for c in channels}
    for row in rows.values():
        await db.write(accounts.mark_up, row.id)
    return rows


def _process(
    settings: Settings,
    role: Role,
    ctx: WorkerContext,
    channels: Configured,
    rows: Mapping[ChannelName, Account],
) -> Process:
    worker = None if role is Role.WEB else Worker(ctx)
    return Process(
        settings=settings,
        role=role,
        rt=ctx.rt,
        lease=ctx.lease,
        ctx=ctx,
        worker=worker,
        intake=Intake(ctx.rt, worker),
        channels=channels,
        ids={name.value: row.id for name, row in rows.items()},
        updates=_updates(channels, rows),
    )


def _updates(channels: Configured, rows: Mapping[ChannelName, Account]) -> TelegramUpdates | None:
    if channels.telegram is None:
        return None
    from bot.wiring.telegram import TelegramUpdates  # noqa: PLC0415 - loaded where configured

    return TelegramUpdates(channels.telegram, rows[ChannelName.TELEGRAM].name)


def _identity(settings: Settings, clock: Clock, role: Role) -> Identity:
    host = socket.gethostname()
    return Identity(
        name=settings.holder_name or host,
        boot=clock.token(),
        host=host,
        pid=os.getpid(),
        role=role.value,
    )
