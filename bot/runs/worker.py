"""The worker: claims what is ready, owns the turns that are under way, lets go in time."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from math import exp

from bot.delivery.context import WorkerContext
from bot.delivery.standalone import StandaloneSender
from bot.domain.decisions.retry import RetryPolicy
from bot.domain.errors import DatabaseUnavailable, StaleLease
from bot.domain.run import Run
from bot.observability.context import bind
from bot.runs.reconcile import Reconciler
from bot.runs.turn import prepare, work
from bot.runs.typing import WorkSigns
from bot.supervisor import Supervisor
from storage import audit_log, chats, runs
from storage.notify import READY
from storage.runs import Claimant
from storage.statements.tx import Tx
from storage.views.evidence import Case, gather, gather_one

_log = logging.getLogger("answerback.worker")
_KEPT = 0.5
"""Seconds for which a chat with more to answer keeps its place, though others wait for one."""
_LOOK_EVERY = 2.0
"""Seconds between looks for standalone messages that may have arrived."""
_AHEAD = 0.3
"""Seconds of work that waits here for its place: more than a settlement or a claim takes. Half of
them are left to runs that follow in their chats, which cost no claim."""
_AHEAD_AT_MOST = 1.0
"""Seconds after which a run that was claimed ahead is let go: the agents became slow."""


class Worker:
    """Runs turns of this process, at most `concurrency` of them at their agents at a time, and at
    most three times as many with those that wait for a place and those whose answers leave."""

    def __init__(self, ctx: WorkerContext) -> None:
        self._ctx = ctx
        self._turns: dict[int, asyncio.Task[None]] = {}
        self._at_agents: set[int] = set()
        """The runs that have a place: their turns are before the end of their agents' calls."""
        self._coming: set[int] = set()
        """The runs whose turns begin: what an agent needs is read before it has a place."""
        self._ahead: dict[int, asyncio.Future[bool]] = {}
        """The runs that wait for a place, which came first first. Told False, they are let go."""
        self._freed = _Rate()
        self._kept_since: dict[int, float] = {}
        """The times at which the turns were taken, from which their chats keep places."""
        self._expected, self._keeping = 0, 0
        self._wake = asyncio.Event()
        self._standalone = asyncio.Event()
        self.draining = False
        self._closed = False
        self._reconciler = Reconciler(ctx)
        self._signs = WorkSigns(ctx)
        self._sender = StandaloneSender(ctx)
        self._claimed_at = ctx.rt.clock.monotonic()
        self._more_due: set[int] = set()
        """The accounts of which runs may be due for which there was no room."""
        self._missed = 0
        """Claims in a row that another process's hint asked for, and that found nothing."""
        self._called: asyncio.TimerHandle | None = None
        ctx.rt.wakeups.listen(self._hear, far=self._hear_from_far)
        ctx.rt.wakeups.keeps = self._keeps
        ctx.places = self
        ctx.lease.on_lapse(self.abandon)

    @property
    def claimless(self) -> float:
        """Seconds since claiming last worked, whether it found something or not."""
        return self._ctx.rt.clock.monotonic() - self._claimed_at

    @property
    def in_flight(self) -> int:
        return len(self._turns)

    def room(self) -> int:
        """The number of turns that may begin here now, or will in a moment."""
        turns = 3 * self._ctx.rt.terms.work.concurrency - len(self._turns) - self._expected
        return max(0, min(self._idle(ahead=_AHEAD / 2), turns))

    def _idle(self, *, ahead: float) -> int:
        """The number of agents that may be called now, or so many seconds ahead: as many places
        will become free as did lately."""
        if self.draining or not self._ctx.lease.holds():
            return 0
        places = self._ctx.rt.terms.work.concurrency
        soon = min(places, int(self._freed.rate(self._ctx.rt.clock.monotonic()) * ahead))
        taken = len(self._at_agents) + len(self._ahead) + len(self._coming)
        return places + soon - taken - self._expected - self._keeping

    def _rooms(self) -> dict[int, int]:
        """The accounts whose line at their platform is short enough, and for how many turns."""
        if self.room() < 1:
            return {}
        rooms = {account: self._ctx.limiters[account].room for account in self._ctx.rt.mine}
        return {account: room for account, room in rooms.items() if room > 0}

    def reserve(self) -> Claimant | None:
        """Keep room for a run that intake may make running, until `release`; None when there is
        none."""
        if self.room() < 1:
            return None
        self._expected += 1
        return self._claimant()

    def release(self) -> None:
        """The run that room was kept for came, and is to be taken, or did not come."""
        self._expected -= 1

    def take(self, run: Run, case: Case | None = None) -> None:
        """Work on a run that is claimed by us. Its case is read where it is not given."""
        if self._closed:
            return  # The last claim's answer came too late: the run is given back.
        task = asyncio.create_task(self._turn(run, case), name=f"run-{run.id}")
        self._turns[run.id] = task
        self._coming.add(run.id)
        self._kept_since[run.id] = self._ctx.rt.clock.monotonic()
        self._ctx.limiters[run.account].turns += 1
        self._ctx.rt.observer.in_flight.set(len(self._at_agents))
        self._ctx.rt.moved(run.account, run.chat)
        task.add_done_callback(lambda _: self._gone(run, task))

    def _seat(self) -> None:
        """Give the places that are free to those who wait for one."""
        while self._ahead and len(self._at_agents) < self._ctx.rt.terms.work.concurrency:
            run = next(iter(self._ahead))
            place = self._ahead.pop(run)
            if not place.done():
                self._at_agents.add(run)
                place.set_result(True)

    def agent_done(self, run: Run) -> None:
        """The agent of this run was called, and another one may be."""
        self._freed.add(self._ctx.rt.clock.monotonic())
        self._at_agents.discard(run.id)
        self._pass_on()

    def _pass_on(self) -> None:
        """A place may be free: it is the next one's."""
        self._seat()
        self._ctx.rt.observer.in_flight.set(len(self._at_agents))
        self._look_again()

    def keep(self, run: Run) -> Claimant | None:
        """Keep the place of this run, which may end, for the one that follows in its chat, until
        `let_go`: what goes on at once costs no claim. None while all agents are busy, or
        the account's line is full, and after a while in which others wait for a place."""
        if self._idle(ahead=_AHEAD) < 1:
            return None
        kept = self._ctx.rt.clock.monotonic() - self._kept_since.get(run.id, 0.0)
        if not self._ctx.limiters[run.account].room or (self._more_due and kept > _KEPT):
            return None
        self._keeping += 1
        return self._claimant()

    def let_go(self) -> None:
        """A place that was kept is to be taken by the run that follows, or by whoever comes."""
        self._keeping -= 1

    def go_on(self, run: Run, follows: Case) -> None:
        """Begin the turn of the run that follows this one, which has ended, in its place."""
        self.take(follows.run, follows)
        if run.id in self._kept_since:
            self._kept_since[follows.run.id] = self._kept_since[run.id]

    def begin(self, tasks: Supervisor) -> None:
        """Start what a worker does all the time."""
        poll = self._ctx.rt.terms.work.poll
        tasks.repeat("claim", self._claim, usual=poll, hint=self._wake)
        send = partial(self._send_standalone, tasks)
        tasks.repeat("standalone", send, usual=poll, hint=self._standalone)
        tasks.repeat("reconcile", self._reconcile, usual=poll)
        tasks.repeat("look", self._look, usual=poll)
        tasks.repeat("typing", self._signs.look, usual=poll)

    async def _claim(self) -> float | None:
        """Claim what is ready, as far as there is room."""
        if self.draining:
            return None
        rt, rooms = self._ctx.rt, self._rooms()
        called, self._called = self._called, None
        before, self._more_due = self._more_due, set(rt.mine) - rooms.keys()
        if rooms:
            # Half of it: what arrives meanwhile begins with the commit that records it. All of it
            # while more was due than there was room for: that came first.
            at_most = self.room() if before else (self.room() + 1) // 2
            claimed = Counter(run.account for run in await self._claim_at_most(rooms, at_most))
            self._missed = self._missed + 1 if called and not claimed else 0
            full = {a for a in rooms if claimed[a] == rooms[a] or claimed.total() == at_most}
            self._go_on_claiming(full, known=before)
        self._claimed_at = rt.clock.monotonic()
        return rt.terms.work.poll

    async def _claim_at_most(self, rooms: Mapping[int, int], room: int) -> Sequence[Run]:
        """Claim so many runs, and of each account so many, and begin their turns."""
        rt, by = self._ctx.rt, self._claimant()
        self._expected += room
        try:
            cases = await rt.db.write(_claim_cases, by, rooms, room)
            claimed: list[tuple[Run, Case | None]] = [(case.run, case) for case in cases]
        except (DatabaseUnavailable, StaleLease):
            raise
        except Exception:  # noqa: BLE001 - the list's edge: what breaks it belongs to one turn
            _log.exception("a claim broke: each turn reads its own case")
            claimed = [(run, None) for run in await rt.db.write(runs.claim, by, rooms, room)]
        finally:
            self._expected -= room
        for run, case in claimed:
            self.take(run, case)
        return [run for run, _ in claimed]

    def _go_on_claiming(self, full: set[int], known: set[int]) -> None:
        """There was no end to what is due of these accounts: take more, or have others do it, who
        hear of it once."""
        self._more_due |= full
        if full & self._rooms().keys():
            self._wake.set()
        elif full - known:
            self._ctx.rt.wakeups.tell_others(READY)

    async def _send_standalone(self, tasks: Supervisor) -> float | None:
        if self.draining:
            return None
        if self._ctx.lease.holds():
            await self._sender.send_due(tasks)
        return self._ctx.rt.terms.work.poll

    async def _reconcile(self) -> float:
        await self._reconciler.look(self._turns)
        return self._reconciler.again_in

    async def _look(self) -> float:
        if self._ctx.lease.holds() and not self.draining:
            await self._sender.look_again()
        return _LOOK_EVERY

    def stop_claiming(self) -> None:
        """Begin no more turns and no more standalone messages."""
        self.draining = True
        for place in self._ahead.values():
            if not place.done():
                place.set_result(False)
        self._ahead.clear()
        self._wake.set()
        self._standalone.set()

    async def finish(self, grace: float) -> None:
        """Let turns end by themselves, at most `grace` seconds; then cut what is left, and
        take no run any more that was claimed meanwhile."""
        ends_at = asyncio.get_running_loop().time() + grace
        while self._turns and (left := ends_at - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(self._turns.values(), timeout=left)
        self._closed = True
        self.abandon()
        if self._turns:
            await asyncio.wait(self._turns.values(), timeout=1.0)

    def abandon(self) -> None:
        """Every turn stops where it is: the lease is lost, or the time is up."""
        for task in self._turns.values():
            task.cancel()

    def _claimant(self) -> Claimant:
        terms = self._ctx.rt.terms.work
        return Claimant(self._ctx.lease.holder(), terms.lease.seconds, terms.run_deadline)

    def _keeps(self, topic: str) -> bool:
        """Tell whether a hint of ours needs to go no further: we have room for what is ready,
        whichever account it is of."""
        return topic == READY and len(self._rooms()) == len(self._ctx.rt.mine)

    def _hear(self, topic: str) -> None:
        kind, _, name = topic.partition(":")
        if kind == READY:
            self._wake.set()
            self._standalone.set()
        elif kind == "stop" and name.isdecimal() and int(name) in self._turns:
            self._turns[int(name)].cancel()

    def _hear_from_far(self, topic: str) -> None:
        """All processes hear this at once, and one of them will have what is ready: who came
        too late before gives the others time."""
        if topic != READY:
            self._hear(topic)
        elif self._called is None:
            clock, retry = self._ctx.rt.clock, self._ctx.rt.retry
            wait = retry.hint.after(self._missed, clock.jitter()) if self._missed else 0.0
            self._called = asyncio.get_running_loop().call_later(wait, self._hear, READY)

    def _gone(self, run: Run, task: asyncio.Task[None]) -> None:
        self._ctx.limiters[run.account].turns -= 1
        if self._turns.get(run.id) is task:
            del self._turns[run.id], self._kept_since[run.id]
            self._coming.discard(run.id)
            self._ahead.pop(run.id, None)
            self._at_agents.discard(run.id)
        self._pass_on()
        if run.deaths >= self._ctx.rt.retry.suspect_after:
            self._wake.set()  # Quarantine is free.

    def _look_again(self) -> None:
        """Claim once there is room again for what may be due."""
        if self._more_due & self._rooms().keys():
            self._wake.set()

    async def _turn(self, run: Run, case: Case | None) -> None:
        rt, names = self._ctx.rt, self._ctx.rt.names(run.account, run.chat)
        bind(run=run.id, attempt=run.attempts, **names)
        story = rt.story(run.account, run.id)
        try:
            with (
                self._ctx.limiters[run.account].turn(),
                rt.tracer.span("run", story, run=run.id, attempt=run.attempts, **names),
            ):
                case = await rt.db.read(gather_one, run) if case is None else case
                came = rt.clock.monotonic()
                bind(request_id=case.messages[0].request_id if case.messages else None)
                turn = await prepare(self._ctx, case)
                if not await self._begins(run):
                    await self._ctx.persist(_unclaim, run)
                    rt.wakeups.tell(READY)
                    return
                await work(self._ctx, self._signs, case.after(rt.clock.monotonic() - came), turn)
        except StaleLease as error:
            _log.info("run %s: %s", run.id, error)
            self._wake.set()  # Whoever took it from us may have made it ready.
        except DatabaseUnavailable as error:
            _log.warning("run %s: the database is away: %s", run.id, error)
        except Exception:  # noqa: BLE001 - the task's edge: the run must not be lost with it
            _log.exception("run %s broke its turn", run.id)
            await self._broke(run)

    async def _begins(self, run: Run) -> bool:
        """Wait for a place. False when none became free in time, or we leave."""
        self._coming.discard(run.id)
        if self.draining:
            return False
        place: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._ahead[run.id] = place
        self._seat()
        if place.done():
            return place.result()
        try:
            async with asyncio.timeout(_AHEAD_AT_MOST):
                return await place
        except TimeoutError:
            return False

    async def _broke(self, run: Run) -> None:
        """Our own code failed on this run: count it, and set aside a run that keeps doing so."""
        try:
            await self._ctx.persist(
                _count_break, run, self._ctx.rt.retry, self._ctx.rt.clock.jitter()
            )
        except (StaleLease, DatabaseUnavailable) as error:
            _log.warning("run %s: could not be put back: %s", run.id, error)


class _Rate:
    """A count of something that happens, by what happened within about `_AHEAD` seconds."""

    def __init__(self) -> None:
        self._count, self._at = 0.0, 0.0

    def add(self, now: float) -> None:
        self._count, self._at = self._left(now) + 1, now

    def rate(self, now: float) -> float:
        """Times a second."""
        return self._left(now) / _AHEAD

    def _left(self, now: float) -> float:
        return self._count * exp((self._at - now) / _AHEAD)


def _claim_cases(tx: Tx, by: Claimant, rooms: Mapping[int, int], room: int) -> Sequence[Case]:
    """Claim, and read what the turns need. A message that joins a run locks it, so that what is
    read after the claim is all that the run will ever have."""
    return gather(tx, runs.claim(tx, by, rooms, room))


def _unclaim(tx: Tx, run: Run) -> None:
    chats.lock(tx, run.chat)
    runs.unclaim(tx, run.claim)


def _count_break(tx: Tx, run: Run, retry: RetryPolicy, jitter: float) -> None:
    chats.lock(tx, run.chat)
    runs.hold(tx, run.claim)
    if run.failures >= retry.breaks_until_set_aside:
        runs.set_aside(tx, run.claim, "it keeps breaking its turn")
        audit_log.note(tx, "worker", "set aside", "it keeps breaking its turn", run=run.id)
        return
    runs.fail(tx, run.claim, retry.agent.after(run.failures + 1, jitter), "its turn broke")
