"""One process of Answerback, put together: what it is made of, and in which order it starts
and stops."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from bot.clock import SystemClock
from bot.delivery.context import WorkerContext
from bot.delivery.inflight import Sends
from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import ChannelName
from bot.domain.ports import Channel, Clock
from bot.domain.turn import Agent
from bot.intake.accept import Intake
from bot.intake.backfill import Backfill
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
from bot.schedule import CronCalendar
from bot.settings import Settings, TelegramMode
from bot.supervisor import Supervisor
from bot.texts import Words
from bot.wiring.agents import Hired, hire
from bot.wiring.channels import Configured, configure
from bot.wiring.metrics import measure
from bot.wiring.rate_limits import pacers
from bot.wiring.tracing import tracer_of
from storage import accounts, holders
from storage.accounts import Account
from storage.engine.database import Database, DatabaseSettings
from storage.holders import Identity
from storage.notify import Wakeups
from storage.runs import claims
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
    tasks: Supervisor
    last_sweep: float = 0.0

    async def readiness(self) -> Sequence[Check]:
        """Whether this process can do its job, and what keeps it from it."""
        checks = [Check("lease", self.lease.holds(), f"{self.lease.remaining():.1f} s left")]
        try:
            async with asyncio.timeout(2.0):
                age = await self.rt.db.read(claims.oldest_due)
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
            Check("tasks", not self.tasks.troubled, _spell(self.tasks.troubled)),
            Check("due", True, said),
        ]

    def _claims(self) -> Sequence[Check]:
        if self.worker is None or self.worker.draining:
            return []
        since = self.worker.claimless
        return [Check("claims", since < _CLAIMS_WITHIN, f"last worked {since:.0f} s ago")]

    async def sweep(self) -> None:
        """One recovery pass. Raises DatabaseUnavailable."""
        await recovery.sweep(self.rt, self.lease)
        self.last_sweep = self.rt.clock.monotonic()

    async def repair(self) -> None:
        """The slower repairs. Raises DatabaseUnavailable."""
        await recovery.repair(self.rt)
        for pacer in self.ctx.pacers.values():
            pacer.forget_idle()

    async def begin(self) -> None:
        """Register, recover, and start everything that runs by itself."""
        await self.lease.begin()
        for first in (self.sweep, self.repair, self.share_pace):
            try:
                await first()
            except DatabaseUnavailable as error:
                _log.warning("put off at the start: %s", error)
        await measure(self.rt, self.lease, self.tasks, lambda: self.last_sweep)
        self._begin_periodic()
        self.tasks.repeat("wakeups", self.rt.wakeups.relay, usual=1.0)
        if self.worker is not None:
            self.worker.begin(self.tasks)
        if self.updates is not None:
            account = self.ids["telegram"]
            await self.updates.meet(self.rt, account)
            introduce = partial(self.updates.introduce, self.rt, account)
            self.tasks.repeat("introduce", introduce, usual=_PROBE_EVERY)
            if self.settings.mode is TelegramMode.POLLING and self.role is not Role.WORKER:
                poller = Poller(self.rt, self.lease, self.intake, account, self.updates)
                self.tasks.repeat("poll", poller.poll, usual=1.0)

        if self.channels.whatsapp is not None:
            records, account = self.channels.whatsapp, self.ids["whatsapp"]
            backfill = Backfill(self.rt, self.lease, self.intake, account, records)
            self.tasks.repeat("backfill", backfill.look_if_due, usual=1.0)

    def _begin_periodic(self) -> None:
        beat, tasks = self.lease.terms.heartbeat, self.tasks
        tasks.every("heartbeat", beat, self.lease.renew, vital=True)
        tasks.every("watch", max(0.1, beat / 5), self._watch, vital=True)
        tasks.every("sweep", min(_SWEEP_EVERY, beat), self.sweep, vital=True)
        tasks.every("repair", _REPAIR_EVERY, self.repair)
        tasks.every("reminders", _REMIND_EVERY, partial(fire_due, self.rt))
        tasks.every("share", beat, self.share_pace)
        if self.updates is not None:
            probe = partial(self.updates.probe, self.rt, self.ids["telegram"])
            tasks.every("probe", _PROBE_EVERY, probe)

    async def share_pace(self) -> None:
        """Learn how many processes the limits of a platform are divided between. Raises
        DatabaseUnavailable."""
        count = await self.rt.db.read(holders.live_workers, self.lease.terms.seconds)
        for pacer in self.ctx.pacers.values():
            pacer.share(count)

    async def _watch(self) -> None:
        self.lease.watch()

    async def end(self) -> None:
        """Stop what runs by itself, and let go of what no hand-over ended, as the death of
        the process would."""
        await self.tasks.stop()
        if self.worker is not None:
            self.worker.abandon()
        self.ctx.sends.abandon()


def _spell(troubled: Mapping[str, str]) -> str:
    return "; ".join(f"{name} {says}" for name, says in troubled.items()) or "all run"


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
            calendar=CronCalendar(settings.timezone),
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
    tasks = Supervisor(ctx.rt.clock)
    return Process(
        settings=settings,
        role=role,
        rt=ctx.rt,
        lease=ctx.lease,
        ctx=ctx,
        worker=worker,
        intake=Intake(ctx.rt, worker, tasks),
        channels=channels,
        ids={name.value: row.id for name, row in rows.items()},
        updates=_updates(channels, rows),
        tasks=tasks,
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
