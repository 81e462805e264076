"""The worker: claims runs that are ready, and owns their turns until they end or are given up."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from bot.delivery.context import WorkerContext
from bot.delivery.standalone import StandaloneSender
from bot.domain.decisions.retry import RetryPolicy
from bot.domain.errors import DatabaseUnavailable, StaleLease
from bot.domain.run import Run
from bot.observability.context import bind
from bot.runs.places import AgentPlaces
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
_LOOK_EVERY = 2.0
"""Seconds between looks for standalone messages that may have arrived."""


class Worker:
    """Claims runs for this process, as many as its places allow, and owns their turns."""

    def __init__(self, ctx: WorkerContext) -> None:
        self._ctx = ctx
        self._turns: dict[int, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._standalone = asyncio.Event()
        """These two are set when a run, and when a standalone part, may be due."""
        self.places = ctx.places = AgentPlaces(ctx, self.take, self._wake.set)
        self._closed = False
        """True once the grace period of a shutdown is over: from then on not even a run that was
        claimed already is begun. Before that, while draining, none is claimed."""
        self._reconciler = Reconciler(ctx)
        self._signs = WorkSigns(ctx)
        self._sender = StandaloneSender(ctx)
        self._claimed_at = ctx.rt.clock.monotonic()
        self._missed = 0
        """Claims in a row that followed another process's hint and found nothing."""
        self._called: asyncio.TimerHandle | None = None
        """The hint of another process that the next claim follows; it may be held back."""
        ctx.rt.wakeups.listen(self._hear, far=self._hear_from_far)
        ctx.rt.wakeups.keeps = self._keeps
        ctx.lease.on_lapse(self.abandon)

    @property
    def claimless(self) -> float:
        """Seconds since a claim last succeeded, whether it found a run or not."""
        return self._ctx.rt.clock.monotonic() - self._claimed_at

    @property
    def in_flight(self) -> int:
        return len(self._turns)

    @property
    def draining(self) -> bool:
        """Tell whether this process is leaving and begins no more turns."""
        return self.places.closed

    def take(self, run: Run, case: Case | None = None) -> None:
        """Begin the turn of a run that we have claimed. Its case is read if it is not given."""
        if self._closed:
            return  # The claim ended too late: the run is given back with the session.
        task = asyncio.create_task(self._turn(run, case), name=f"run-{run.id}")
        self._turns[run.id] = task
        self.places.come(run)
        self._ctx.limiters[run.account].turns += 1
        self._ctx.rt.moved(run.account, run.chat)
        task.add_done_callback(lambda _: self._gone(run, task))

    def begin(self, tasks: Supervisor) -> None:
        """Start the worker's background tasks."""
        poll = self._ctx.rt.terms.work.poll
        tasks.repeat("claim", self._claim, usual=poll, hint=self._wake)
        send = partial(self._send_standalone, tasks)
        tasks.repeat("standalone", send, usual=poll, hint=self._standalone)
        tasks.repeat("reconcile", self._reconcile, usual=poll)
        tasks.repeat("look", self._look, usual=poll)
        tasks.repeat("typing", self._signs.look, usual=poll)

    async def _claim(self) -> float | None:
        """Claim what is ready, as far as there is room. Returns the seconds until the next."""
        if self.draining:
            return None
        rt, rooms = self._ctx.rt, self.places.rooms()
        called, self._called = self._called, None
        before, self.places.more_due = self.places.more_due, set(rt.mine) - rooms.keys()
        if rooms:
            # Half of the room: the rest is for runs that intake makes running as they arrive.
            # All of it if the last claim left runs waiting, since those came first.
            room = self.places.room()
            at_most = room if before else (room + 1) // 2
            claimed = Counter(run.account for run in await self._claim_at_most(rooms, at_most))
            self._missed = self._missed + 1 if called and not claimed else 0
            full = {a for a in rooms if claimed[a] == rooms[a] or claimed.total() == at_most}
            self._go_on_claiming(full, known=before)
        self._claimed_at = rt.clock.monotonic()
        return rt.terms.work.poll

    async def _claim_at_most(self, rooms: Mapping[int, int], room: int) -> Sequence[Run]:
        """Claim at most `room` runs, of each account at most its own of the `rooms`, and begin
        their turns."""
        rt, by = self._ctx.rt, self._ctx.claimant()
        with self.places.expecting(room):
            try:
                cases = await rt.db.write(_claim_cases, by, rooms, room)
                claimed: list[tuple[Run, Case | None]] = [(case.run, case) for case in cases]
            except (DatabaseUnavailable, StaleLease):
                raise
            except Exception:  # noqa: BLE001 - the list's edge: one case must not break the others
                _log.exception("a claim broke: each turn reads its own case")
                claimed = [(run, None) for run in await rt.db.write(runs.claim, by, rooms, room)]
        for run, case in claimed:
            self.take(run, case)
        return [run for run, _ in claimed]

    def _go_on_claiming(self, full: set[int], known: set[int]) -> None:
        """Have more claimed of the accounts that are `full`, of which more may be due: by us if
        there is room, else by the other processes, which are told once."""
        self.places.more_due |= full
        if full & self.places.rooms().keys():
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
        """Begin no more turns and no more standalone parts."""
        self.places.close()
        self._wake.set()
        self._standalone.set()

    async def finish(self, grace: float) -> None:
        """Let the turns end by themselves for at most `grace` seconds, then cancel those that are
        left. A run that is claimed even later is not begun."""
        ends_at = asyncio.get_running_loop().time() + grace
        while self._turns and (left := ends_at - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(self._turns.values(), timeout=left)
        self._closed = True
        self.abandon()
        if self._turns:
            await asyncio.wait(self._turns.values(), timeout=1.0)

    def abandon(self) -> None:
        """Cancel every turn: the lease is lost, or the time is up."""
        for task in self._turns.values():
            task.cancel()

    def _keeps(self, topic: str) -> bool:
        """Tell whether a hint can stay in this process: it has room for runs of every account."""
        return topic == READY and len(self.places.rooms()) == len(self._ctx.rt.mine)

    def _hear(self, topic: str) -> None:
        kind, _, name = topic.partition(":")
        if kind == READY:
            self._wake.set()
            self._standalone.set()
        elif kind == "stop" and name.isdecimal() and int(name) in self._turns:
            self._turns[int(name)].cancel()

    def _hear_from_far(self, topic: str) -> None:
        """Hear a hint of another process. All processes hear it at once, and only one of them gets
        the run: those that came too late before let the others go first."""
        if topic != READY:
            self._hear(topic)
        elif self._called is None:
            clock, retry = self._ctx.rt.clock, self._ctx.rt.retry
            wait = retry.hint.after(self._missed, clock.jitter()) if self._missed else 0.0
            self._called = asyncio.get_running_loop().call_later(wait, self._hear, READY)

    def _gone(self, run: Run, task: asyncio.Task[None]) -> None:
        self._ctx.limiters[run.account].turns -= 1
        if self._turns.get(run.id) is task:
            del self._turns[run.id]
            self.places.leave(run)
        self.places.pass_on()
        if run.deaths >= self._ctx.rt.retry.suspect_after:
            self._wake.set()  # The holder may claim another suspect now.

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
                if not await self.places.wait(run):
                    await self._ctx.persist(_unclaim, run)
                    rt.wakeups.tell(READY)
                    return
                await work(self._ctx, self._signs, case.after(rt.clock.monotonic() - came), turn)
        except StaleLease as error:
            _log.info("run %s: %s", run.id, error)
            self._wake.set()  # It may have become ready when it was taken from us.
        except DatabaseUnavailable as error:
            _log.warning("run %s: the database is away: %s", run.id, error)
        except Exception:  # noqa: BLE001 - the task's edge: the run must not be lost with it
            _log.exception("run %s broke its turn", run.id)
            await self._broke(run)

    async def _broke(self, run: Run) -> None:
        """Count that our own code failed on this run; set it aside if that keeps happening."""
        try:
            await self._ctx.persist(
                _count_break, run, self._ctx.rt.retry, self._ctx.rt.clock.jitter()
            )
        except (StaleLease, DatabaseUnavailable) as error:
            _log.warning("run %s: could not be put back: %s", run.id, error)


def _claim_cases(tx: Tx, by: Claimant, rooms: Mapping[int, int], room: int) -> Sequence[Case]:
    """Claim runs, and read what their turns need. A message can only join a run that nobody has
    claimed, so what is read here is all that the run will ever have."""
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
