"""The worker: claims what is ready, owns the turns that are under way, lets go in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from bot.domain.errors import DatabaseUnavailable, StaleLease
from bot.domain.retry import backoff
from bot.domain.run import Run
from bot.flows.courier import carry
from bot.flows.desk import Desk
from bot.flows.turn import work
from storage import chats, events, runs
from storage.runs import Claimant
from storage.tx import Tx
from storage.wakeup import READY

_log = logging.getLogger("answerback.worker")
_BREAKS_UNTIL_SET_ASIDE = 3


class Worker:
    """Runs turns of this process, at most `concurrency` at a time."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._turns: dict[int, asyncio.Task[None]] = {}
        self._expected = 0
        self._wake = asyncio.Event()
        self._draining = False
        self._unknown: frozenset[int] = frozenset()
        self._lost: frozenset[int] = frozenset()
        desk.rt.wakeups.listen(self._hear)
        desk.lease.on_lapse(self.abandon)

    @property
    def in_flight(self) -> int:
        return len(self._turns)

    @property
    def draining(self) -> bool:
        return self._draining

    def room(self) -> int:
        """How many more turns may begin here now."""
        if self._draining or not self._desk.lease.holds():
            return 0
        return max(0, self._desk.rt.terms.work.concurrency - len(self._turns) - self._expected)

    def expect(self) -> Claimant | None:
        """Keep room for a run that intake may make running; None when there is none. Ends
        with `take` or `cancel_expected`."""
        if self.room() < 1:
            return None
        self._expected += 1
        return self._claimant()

    def cancel_expected(self) -> None:
        """The expected run did not come."""
        self._expected -= 1

    def take_expected(self, run: Run) -> None:
        """The expected run came, claimed by us."""
        self._expected -= 1
        self.take(run)

    def take(self, run: Run) -> None:
        """Work on a run that is claimed by us."""
        task = asyncio.create_task(self._turn(run), name=f"run-{run.id}")
        self._turns[run.id] = task
        self._desk.rt.observer.in_flight.set(len(self._turns))
        task.add_done_callback(lambda _: self._gone(run.id, task))

    async def claim_forever(self) -> None:
        """Claim and carry until drained: on every hint, and once a second without one."""
        while not self._draining:
            self._wake.clear()
            try:
                await self._claim()
                await self._drop_lost()
            except DatabaseUnavailable as error:
                _log.warning("can't claim: %s", error)
            except StaleLease as error:
                _log.info("not claiming: %s", error)
            await self._woken(self._desk.rt.terms.work.poll)

    async def carry_forever(self) -> None:
        """Carry loose messages until cancelled."""
        while True:
            carried = 0
            try:
                if self._desk.lease.holds():
                    carried = await carry(self._desk)
            except DatabaseUnavailable as error:
                _log.warning("can't carry: %s", error)
            except StaleLease as error:
                _log.info("not carrying: %s", error)
            if not carried:
                await self._desk.rt.wakeups.wait(READY, self._desk.rt.terms.work.poll)

    def stop_claiming(self) -> None:
        """Begin no more turns."""
        self._draining = True
        self._wake.set()

    async def finish(self, grace: float) -> None:
        """Let turns end by themselves, at most `grace` seconds; then cut what is left."""
        if self._turns:
            await asyncio.wait(self._turns.values(), timeout=max(0.0, grace))
        await self._cut(tuple(self._turns.values()))

    def abandon(self) -> None:
        """The lease is lost: every turn stops where it is."""
        for task in self._turns.values():
            task.cancel()

    async def _cut(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)

    def _claimant(self) -> Claimant:
        terms = self._desk.rt.terms.work
        return Claimant(self._desk.lease.holder(), terms.lease.seconds, terms.run_deadline)

    async def _claim(self) -> None:
        room = self.room()
        if room < 1:
            return
        rt = self._desk.rt
        self._expected += room
        try:
            claimed = await rt.db.write(_claim, self._claimant(), rt.mine, room)
        finally:
            self._expected -= room
        for run in claimed:
            self.take(run)

    async def _drop_lost(self) -> None:
        """Stop turns whose run was ended or taken by somebody else; give back runs that the
        database says are ours and that nobody here works on (a claim whose answer was lost)."""
        if not self._desk.lease.holds():
            return
        rt = self._desk.rt
        held = {r.id: r for r in await rt.db.read(runs.held_by, self._desk.lease.holder())}
        # One look can be wrong: the answer to a claim may still be on its way to us.
        lost = frozenset(self._turns.keys() - held)
        unknown = frozenset(held.keys() - self._turns)
        for run_id in lost & self._lost & self._turns.keys():
            self._turns[run_id].cancel()
        for run_id in unknown & self._unknown - self._turns.keys():
            await rt.db.write(_give_back_unknown, held[run_id])
        self._lost, self._unknown = lost, unknown

    def _hear(self, topic: str) -> None:
        kind, _, name = topic.partition(":")
        if kind == READY:
            self._wake.set()
        elif kind == "stop" and name.isdecimal() and int(name) in self._turns:
            self._turns[int(name)].cancel()

    async def _woken(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _gone(self, run_id: int, task: asyncio.Task[None]) -> None:
        if self._turns.get(run_id) is task:
            del self._turns[run_id]
        self._desk.rt.observer.in_flight.set(len(self._turns))
        self._wake.set()

    async def _turn(self, run: Run) -> None:
        try:
            await work(self._desk, run)
        except StaleLease as error:
            _log.info("run %s: %s", run.id, error)
        except DatabaseUnavailable as error:
            _log.warning("run %s: the database is away: %s", run.id, error)
        except Exception:  # noqa: BLE001 - the task's edge: the run must not be lost with it
            _log.exception("run %s broke its turn", run.id)
            await self._broke(run)

    async def _broke(self, run: Run) -> None:
        """Our own code failed on this run: count it, and set aside a run that keeps doing so."""
        try:
            await self._desk.persist(_count_break, run, self._desk.rt.clock.jitter())
        except (StaleLease, DatabaseUnavailable) as error:
            _log.warning("run %s: could not be put back: %s", run.id, error)


def _claim(tx: Tx, by: Claimant, mine: Sequence[int], room: int) -> Sequence[Run]:
    down = set(runs.down_accounts(tx))
    up = [account for account in mine if account not in down]
    suspect = runs.claim_suspect(tx, by, up)
    first = [] if suspect is None else [suspect]
    return [*first, *runs.claim(tx, by, up, room - len(first))]


def _give_back_unknown(tx: Tx, run: Run) -> None:
    chats.lock(tx, run.chat)
    runs.give_back(tx, run.grip, 0.0, "claimed by a process that did not hear of it")
    chats.settle_pause(tx, run.chat)


def _count_break(tx: Tx, run: Run, jitter: float) -> None:
    chats.lock(tx, run.chat)
    if run.failures >= _BREAKS_UNTIL_SET_ASIDE:
        runs.set_aside(tx, run.id, "it keeps breaking its turn")
        events.note(tx, "worker", "set aside", "it keeps breaking its turn", run=run.id)
        return
    runs.fail(tx, run.grip, backoff(run.failures + 1, jitter), "its turn broke")
    chats.settle_pause(tx, run.chat)
