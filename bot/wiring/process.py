"""One process of Answerback, put together: its parts, and the order of its start and stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from urllib.parse import urlsplit

from bot.clients.desk import ClientDesk
from bot.clients.files import Files
from bot.clients.hosted import HostedFiles
from bot.clock import SystemClock
from bot.delivery.context import WorkerContext
from bot.delivery.inflight import InFlightSends
from bot.delivery.reopening import LOOK_EVERY, Reopening
from bot.delivery.status import record_early
from bot.domain.clients.desk import App
from bot.domain.errors import DatabaseUnavailable
from bot.domain.findings import Check
from bot.domain.plugin import Endpoint, Terminal
from bot.domain.ports import Clock
from bot.domain.turn import Agent
from bot.http import Site
from bot.intake import batching
from bot.intake.accept import Intake
from bot.intake.arrival import Arrival
from bot.intake.backfill import Backfill
from bot.intake.polling import Poller
from bot.intake.profile import Introduction
from bot.lazy_imports import lazy_imports, load
from bot.leases import recovery
from bot.leases.checkpoints import Reached, nowhere
from bot.leases.keeper import LeaseKeeper
from bot.leases.runtime import Runtime
from bot.loop_watchdog import LoopWatchdog
from bot.observability.context import held_by
from bot.observability.logs import report_from_loop
from bot.observability.tracing import Tracer
from bot.operations.restored import Settled, settle
from bot.operations.webhooks import WebhookWatch
from bot.privacy.forget import settle_compaction
from bot.privacy.requests import fulfil
from bot.runs.handoffs import tell_forsaken
from bot.runs.reminders import fire_due
from bot.runs.worker import Worker
from bot.schedule import DAY, CronCalendar
from bot.settings import Settings
from bot.supervisor import Supervisor
from bot.version import our_version
from bot.wiring.agents import BuiltAgent, build_agent, words_of
from bot.wiring.channels import connect
from bot.wiring.observability import measure, tracer_of
from bot.wiring.operator_page import operator_page
from bot.wiring.rate_limits import rate_limiters
from bot.wiring.role import Role
from channels import console
from channels.console.channel import parse, request_id
from storage import accounts, chats, holders, inbox, journal, outbox, runs
from storage.engine.database import Database, DatabaseSettings
from storage.engine.demands import refusal_of, refuse_unfit
from storage.holders import Identity
from storage.notify import Wakeups
from storage.retention import delete_old, restored_from
from storage.schema.migrate import NEWEST, upgrade
from storage.views.history import history_lane
from storage.views.progress import Progress, run_asked, run_at_work

with lazy_imports(__name__):
    from bot.operator.app import OperatorPage

_log = logging.getLogger("answerback")
_SWEEP_EVERY = 5.0
_CLAIMS_WITHIN = 15.0
"""Seconds since the last claim within which a worker is ready."""
_REPAIR_EVERY = 60.0
_REMIND_EVERY = 1.0
_REQUESTS_EVERY = 1.0
_HANDOFFS_EVERY = 30.0
_SHARE_EVERY = 1.0
"""Seconds between two counts of the processes that share the rate limits."""
_RETAIN_EVERY = 600.0
_BETWEEN_PAGES = 0.1
_PROBE_EVERY = 15.0
_BEAT_EVERY = 10.0
"""Seconds between keep-alives on an open stream: proxies close one that is silent for a minute."""
_ASKED_EVERY = 1.0
"""Seconds for which an answer of the database check is used again."""
_TRIED_EVERY = 15.0
"""Seconds between two trial writes of the database check."""


class DatabaseCheck:
    """The check that the database answers and takes writes, and how long the oldest due run has
    waited. The database is asked at most once a second; in between, the last answer is given."""

    def __init__(self, url: str, db: Database, clock: Clock) -> None:
        self._url = url
        self._db = db
        self._clock = clock
        self._asking = asyncio.Lock()
        self._heard_at = self._tried_at = -inf
        self._due: float | None = None
        self._trouble = ""

    async def ask(self) -> tuple[Check, Check | None]:
        """The check of the database and, if that answered, of the oldest due run."""
        async with self._asking:
            if self._clock.monotonic() - self._heard_at >= _ASKED_EVERY:
                await self._ask()
        if self._trouble:
            return Check("database", False, self._trouble), None
        said = "nothing is due"
        if self._due is not None:
            waits = self._due + self._clock.monotonic() - self._heard_at
            said = f"the oldest due run waits {waits:.0f} s"
        refused = self._db.trouble
        return Check("database", not refused, refused or "answers"), Check("due", True, said)

    async def _ask(self) -> None:
        self._trouble = ""
        try:
            async with asyncio.timeout(2.0):
                self._due = await self._db.read(runs.oldest_due)
                await self._try_to_write()
        except DatabaseUnavailable as error:
            self._trouble = str(error)
        except TimeoutError:
            self._trouble = "no answer in 2 s"
        self._heard_at = self._clock.monotonic()

    async def _try_to_write(self) -> None:
        """Try a write after one has failed, until it succeeds. On PostgreSQL try one now and then
        in any case: a lease may still be renewed on a disk that is too full for messages."""
        now = self._clock.monotonic()
        unasked = not self._db.is_sqlite and now - self._tried_at >= _TRIED_EVERY
        if not self._db.trouble and not unasked:
            return
        self._tried_at = now
        refused = await asyncio.to_thread(refusal_of, self._url)
        self._db.trouble = (self._db.trouble or refused) if refused else ""


@dataclass(slots=True)
class Process:
    """The parts of a running process, made by `running`.

    `endpoints` and, for those with pages, `desks` are by the rows of their accounts.
    `introductions` learn our own names from the platforms that have to be asked.
    """

    settings: Settings
    role: Role
    rt: Runtime
    lease: LeaseKeeper
    ctx: WorkerContext
    worker: Worker | None
    intake: Intake
    endpoints: Mapping[int, Endpoint]
    introductions: Sequence[Introduction]
    tasks: Supervisor
    last_sweep: float = 0.0
    doors: list[Poller | WebhookWatch] = field(default_factory=list)
    """The ways by which messages come in: by polling a platform, or by its webhook."""
    _repaired: int = 0
    desks: Mapping[int, ClientDesk] = field(init=False)
    operator_page: OperatorPage | None = field(init=False)
    _heard: DatabaseCheck = field(init=False)

    def __post_init__(self) -> None:
        self.desks = _desks(self.rt, self.intake, self.endpoints)
        self.operator_page = operator_page(self.settings, self.role, self.rt)
        self._heard = DatabaseCheck(self.settings.database_url, self.rt.db, self.rt.clock)

    @property
    def ids(self) -> Mapping[str, int]:
        """The accounts' rows by the names of their channels."""
        return {endpoint.channel.name: row for row, endpoint in self.endpoints.items()}

    @property
    def terminal(self) -> int:
        """The row of the terminal's account, in a process that has a terminal."""
        return self.ids[console.NAME]

    async def readiness(self) -> Sequence[Check]:
        """Check everything that could keep this process from its job."""
        checks = [Check("lease", self.lease.holds(), f"{self.lease.remaining():.1f} s left")]
        database, due = await self._heard.ask()
        checks.append(database)
        if due is None:
            return checks
        since = self.rt.clock.monotonic() - self.last_sweep
        fresh = since < 4 * _SWEEP_EVERY + 2 * self.lease.terms.heartbeat
        troubled = "; ".join(f"{name} {says}" for name, says in self.tasks.troubled.items())
        checks.append(Check("sweep", fresh, f"{since:.0f} s ago"))
        if self.worker is not None and not self.worker.draining:
            idle = self.worker.claimless
            checks.append(Check("claims", idle < _CLAIMS_WITHIN, f"last worked {idle:.0f} s ago"))
        return [
            *checks,
            self._comes_in(),
            Check("tasks", not troubled, troubled or "all run"),
            due,
        ]

    def _comes_in(self) -> Check:
        """Name every account of which nothing comes in. The process is ready if any is heard."""
        well = not self.doors or any(not door.cut_off for door in self.doors)
        return Check("intake", well, "; ".join(self.cut_off) or "nothing keeps messages out")

    @property
    def cut_off(self) -> Sequence[str]:
        """The reasons why nothing comes in, one for each account that is concerned."""
        reasons = (door.cut_off or door.failing for door in self.doors)
        return [reason for reason in reasons if reason]

    async def sweep(self) -> None:
        """One recovery pass. Raises DatabaseUnavailable."""
        await recovery.sweep(self.rt, self.lease)
        self.last_sweep = self.rt.clock.monotonic()

    async def repair(self) -> None:
        """Repair a page of chats, and forget idle rate limits. Raises DatabaseUnavailable."""
        _, self._repaired = await recovery.repair_page(self.rt, self._repaired)
        for limiter in self.ctx.limiters.values():
            limiter.forget_idle()

    async def retain(self) -> None:
        """Delete the words of what has been over for longer than they are kept, page by page, with
        pauses for others. Raises DatabaseUnavailable."""
        older = self.settings.retention_days * DAY
        while older and await self.rt.db.write(delete_old, older):
            await self.rt.clock.sleep(_BETWEEN_PAGES)
        await settle_compaction(self.rt.db)

    async def begin(self) -> None:
        """Register as a holder, recover, and start the background tasks."""
        await self.lease.begin()
        for first in (self.sweep, self.repair, self.share_rate_limits, self.gather_on):
            try:
                await first()
            except DatabaseUnavailable as error:
                _log.warning("put off at the start: %s", error)
        await measure(
            self.rt, self.lease, self.tasks, lambda: self.last_sweep, lambda: len(self.cut_off)
        )
        self._begin_periodic()
        self._begin_desks()
        self.tasks.repeat("wakeups", self.rt.wakeups.relay, usual=1.0)
        if self.worker is not None:
            self.worker.begin(self.tasks)
        for introduction in self.introductions:
            await introduction.meet()
            name = f"introduce {introduction.account}"
            self.tasks.repeat(name, introduction.introduce, usual=_PROBE_EVERY)
        self._begin_doors()

    def _begin_doors(self) -> None:
        for account, endpoint in self.endpoints.items():
            if endpoint.updates is not None and self.role is not Role.WORKER:
                poller = Poller(self.rt, self.lease, self.intake, account, endpoint.updates)
                self.doors.append(poller)
                self.tasks.repeat(f"poll {account}", poller.poll, usual=1.0)
            elif endpoint.webhook is not None and self.role is not Role.WORKER:
                watch = WebhookWatch(endpoint.webhook)
                self.doors.append(watch)
                self.tasks.repeat(f"webhook {account}", watch.look, usual=_PROBE_EVERY)
            if endpoint.records is not None:
                backfill = Backfill(self.rt, self.lease, self.intake, account, endpoint.records)
                self.tasks.repeat(f"backfill {account}", backfill.look_if_due, usual=1.0)

    def _begin_periodic(self) -> None:
        beat, tasks = self.lease.terms.heartbeat, self.tasks
        tasks.every("heartbeat", beat, self.lease.renew, vital=True)
        tasks.every("watch", max(0.1, beat / 5), self._watch, vital=True)
        tasks.every("sweep", min(_SWEEP_EVERY, beat), self.sweep, vital=True)
        tasks.every("repair", _REPAIR_EVERY, self.repair)
        if self.rt.carriers:
            tasks.every("early statuses", _SWEEP_EVERY, partial(record_early, self.rt))
        tasks.every("retention", _RETAIN_EVERY, self.retain)
        tasks.every("reminders", _REMIND_EVERY, partial(fire_due, self.rt))
        tasks.every("data requests", _REQUESTS_EVERY, partial(fulfil, self.rt))
        tasks.every("handoffs", _HANDOFFS_EVERY, partial(tell_forsaken, self.rt))
        tasks.every("share", min(_SHARE_EVERY, beat), self.share_rate_limits)
        asks = {row: e.recovered for row, e in self.endpoints.items() if e.recovered is not None}
        if asks:
            reopening = Reopening(self.rt, self.lease, asks)
            tasks.every("accounts down", LOOK_EVERY, reopening.look)
        for introduction in self.introductions:
            tasks.every(f"probe {introduction.account}", _PROBE_EVERY, introduction.probe)

    def _begin_desks(self) -> None:
        older = self.settings.retention_days * DAY
        for account in self.endpoints:
            desk = self.desks.get(account)
            files = Files(self.rt.db, account) if desk is None else desk.files
            self.tasks.every(f"files {account}", _RETAIN_EVERY, partial(files.sweep, older))
            if desk is not None:
                follow = desk.followers
                self.tasks.repeat(f"follow {account}", follow.look, usual=1.0, hint=follow.hint)
                self.tasks.every(f"beat {account}", _BEAT_EVERY, follow.beat)

    def send_followers_away(self) -> None:
        """End the streams of clients, which then come back to another process."""
        for desk in self.desks.values():
            desk.followers.leave()
        if self.operator_page is not None:
            self.operator_page.leave()

    async def share_rate_limits(self) -> None:
        """Count the processes between which the rate limits are divided. Raises
        DatabaseUnavailable."""
        count = await self.rt.db.read(holders.live_workers, self.lease.terms.seconds)
        for limiter in self.ctx.limiters.values():
            limiter.share(count)

    async def gather_on(self) -> None:
        """Wait again for the rest of bundles that were being gathered. Raises
        DatabaseUnavailable."""
        await self.rt.db.write(batching.gather_on, self.rt, self.lease.name)

    async def _watch(self) -> None:
        self.lease.watch()

    async def end(self) -> None:
        """Stop the background tasks, and drop what no hand-over has ended, as the death of the
        process would."""
        await self.tasks.stop()
        if self.worker is not None:
            self.worker.abandon()
        self.ctx.sends.abandon()


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts that replace those of production, for tests and the chat in a terminal.

    `pages`: web pages that need no credentials are served beside the terminal. `endpoints` replace
    the accounts of the settings. `around` wraps the agent.
    """

    terminal: Terminal | None = None
    agent: Agent | None = None
    clock: Clock = field(default_factory=SystemClock)
    reached: Reached = nowhere
    open_database: Callable[[DatabaseSettings, Clock], Database] = Database
    tracer: Tracer | None = None
    pages: bool = False
    endpoints: Sequence[Endpoint] = ()
    around: Callable[[Agent], Agent] = lambda agent: agent


@asynccontextmanager
async def running(
    settings: Settings, role: Role = Role.ALL, parts: Parts | None = None
) -> AsyncIterator[Process]:
    """A process that works until the body ends. The body should hand over first
    (`bot.runs.shutdown`); without that, leaving is like dying.

    Raises ConfigurationError, DatabaseUnavailable.
    """
    parts = parts or Parts()
    load(chats, inbox, journal, outbox, runs)
    async with AsyncExitStack() as stack:
        asyncio.get_running_loop().set_exception_handler(report_from_loop)
        tracer = parts.tracer or tracer_of(settings, parts.clock)
        stack.push_async_callback(asyncio.to_thread, tracer.close)
        at_last = stack.enter_context(ExitStack())
        db = await _opened(settings, parts, stack)
        words = words_of(settings)
        endpoints = await _rows(
            db,
            parts.endpoints
            or connect(settings, parts.clock, words, parts.terminal, pages=parts.pages),
        )
        for endpoint in endpoints.values():
            await endpoint.channel.open()
            stack.push_async_callback(endpoint.channel.close)
        rt = Runtime(
            db=db,
            clock=parts.clock,
            channels={row: e.channel for row, e in endpoints.items()},
            carriers={row: e.carrier for row, e in endpoints.items() if e.carrier is not None},
            terms=settings.terms(),
            words=words,
            wakeups=Wakeups(parts.clock, settings.redis_url or None),
            calendar=CronCalendar(settings.timezone),
            reached=parts.reached,
            tracer=tracer,
        )
        built = BuiltAgent(parts.agent) if parts.agent else build_agent(settings, words, rt.clock)
        stack.push_async_callback(built.close)
        lease = LeaseKeeper(
            rt.db,
            rt.clock,
            rt.terms.work.lease,
            _identity(settings, role, rt.clock),
            stack.enter_context(LoopWatchdog()).stood,
        )
        # After the database is closed: until then a renewal under way may take the name.
        at_last.callback(lease.forget_name)
        limiters = rate_limiters(rt, settings.redis_url, stack)
        ctx = WorkerContext(
            rt,
            lease,
            InFlightSends(rt, lease, limiters),
            parts.around(built.agent),
            limiters,
            history_lane(rt.db, rt.terms.work.history_runs),
            built.reads_history,
        )
        worker = None if role is Role.WEB else Worker(ctx)
        tasks = Supervisor(rt.clock)
        process = Process(
            settings=settings,
            role=role,
            rt=rt,
            lease=lease,
            ctx=ctx,
            worker=worker,
            intake=Intake(rt, worker, tasks),
            endpoints=endpoints,
            introductions=[
                Introduction(rt, row, endpoint.profile)
                for row, endpoint in endpoints.items()
                if endpoint.profile is not None
            ],
            tasks=tasks,
        )
        held_by(lambda: process.lease.name)
        try:
            await process.begin()
            yield process
        finally:
            await process.end()


def _identity(settings: Settings, role: Role, clock: Clock) -> Identity:
    host = socket.gethostname()
    return Identity(
        name=settings.holder_name or host,
        boot=clock.token(),
        host=host,
        pid=os.getpid(),
        role=role.value,
        version=our_version(),
    )


async def _opened(settings: Settings, parts: Parts, stack: AsyncExitStack) -> Database:
    """The database, migrated and settled, open until the stack ends. Raises ConfigurationError,
    DatabaseUnavailable."""
    await asyncio.to_thread(make_ready, settings.database_url, parts.clock)
    place = DatabaseSettings(settings.database_url, pool=settings.database_pool)
    db = parts.open_database(place, parts.clock)
    stack.callback(db.close)
    if await db.read(restored_from) is not None:
        settled = await asyncio.to_thread(settle_restored, settings, parts.clock)
        if settled is not None:
            _log.warning("%s", settled.says)
    return db


def make_ready(url: str, clock: Clock) -> str:
    """Refuse a database that we can't work on, else bring it to our schema. Returns its revision.
    Raises ConfigurationError, DatabaseUnavailable."""
    for finding in refuse_unfit(url, clock):
        _log.warning("%s: %s; %s", finding.name, finding.says, finding.fix)
    revision = upgrade(url)
    if revision > NEWEST:
        _log.warning(
            "the database is at schema %s of a newer version; this one has %s, and works on it",
            revision,
            NEWEST,
        )
    return revision


_SETTLING = 600
"""Seconds that settling a backup may take: everything that was open in it is changed."""


def settle_restored(settings: Settings, clock: Clock) -> Settled | None:
    """Settle a database that came from a backup. None: another process did. Raises
    DatabaseUnavailable."""
    db = Database(DatabaseSettings(settings.database_url, pool=1, patience=_SETTLING), clock)
    try:
        return db.now_sync(settle, CronCalendar(settings.timezone))
    finally:
        db.close()


async def _rows(db: Database, endpoints: Sequence[Endpoint]) -> Mapping[int, Endpoint]:
    """The endpoints by the rows of their accounts, which are marked as up again: whatever was wrong
    may have been put right before this start."""
    found = {}
    for endpoint in endpoints:
        account = await db.write(accounts.ensure, endpoint.channel.name, endpoint.channel.account)
        await db.write(accounts.mark_up, account.id)
        await db.write(accounts.comes_in, account.id)
        if endpoint.profile is not None:
            endpoint.profile.remember(account.name)
        found[account.id] = endpoint
    return found


def _desks(
    rt: Runtime, intake: Intake, endpoints: Mapping[int, Endpoint]
) -> Mapping[int, ClientDesk]:
    """The desks of the accounts that have pages, by their rows, each bound to its pages."""
    desks = {}
    for row, endpoint in endpoints.items():
        if endpoint.pages is not None:
            desks[row] = ClientDesk(rt, row, intake, endpoint.pages)
            endpoint.pages.bind(desks[row])
    return desks


def site(process: Process) -> Site:
    """The parts of the HTTP application of this process."""
    endpoints = {} if process.role is Role.WORKER else process.endpoints
    routes = [(row, r) for row, endpoint in endpoints.items() for r in endpoint.routes]
    pages: dict[str, App] = {
        e.pages.path: e.pages.app() for e in endpoints.values() if e.pages is not None
    }
    if process.role is not Role.WORKER:
        hosted = HostedFiles(process.rt)
        pages[hosted.path] = hosted.app()
    if process.operator_page is not None:
        pages[process.operator_page.path] = process.operator_page
    return Site(
        process.rt,
        process.intake,
        process.readiness,
        routes=routes,
        pages=pages,
        prefix=urlsplit(process.settings.public_url).path,
    )


async def typed(process: Process, line: str, number: str) -> None:
    """Record a line that a person typed in the terminal. `number` is its id. Raises
    DatabaseUnavailable."""
    arrival = Arrival(process.terminal, line, "terminal")
    await process.intake.take(arrival, (parse(line, number),))


async def asked(process: Process, number: str) -> Progress | None:
    """The run that answers the line of this number, whichever process recorded it, or None. Raises
    DatabaseUnavailable."""
    name = request_id(number)
    return await process.rt.db.read(run_asked, process.terminal, name)


async def at_work(process: Process) -> Progress | None:
    """The run of the terminal's chat that is running, in whichever process, or None. Raises
    DatabaseUnavailable."""
    return await process.rt.db.read(run_at_work, process.terminal)
