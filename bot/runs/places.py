"""Places: a process calls at most `CONCURRENCY` agents at a time, and each call takes a place.

A turn goes through four phases. It *comes*: what its agent needs is read. It *waits* for a place.
It is *at its agent*, and only then holds a place. It *leaves*: its answer is sent. As reading and
sending need no place, a process has more turns than places, at most three times as many.

Runs are claimed before a place is free for them ("ahead"), as many as places are likely to become
free in the meantime, so that no place is empty while a claim is under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import exp

from bot.delivery.context import WorkerContext
from bot.domain.run import Run
from storage.runs import Claimant
from storage.views.evidence import Case

_KEPT = 0.5
"""Seconds for which the runs of one chat may pass a place on among themselves while other runs
wait for one."""
_AHEAD = 0.3
"""Seconds to look ahead when runs are claimed ahead: longer than a claim or a settlement takes. A
claim uses half of it; the other half is left to the runs that follow in their chats without one."""
AHEAD_AT_MOST = 1.0
"""Seconds after which a run that was claimed ahead is unclaimed: the agents became slow."""


class AgentPlaces:
    """The places of this process. `begin` begins the turn of a claimed run; `on_room` is called
    when there is room again for runs that may be due."""

    def __init__(
        self,
        ctx: WorkerContext,
        begin: Callable[[Run, Case], None],
        on_room: Callable[[], None],
    ) -> None:
        self._ctx = ctx
        self._begin = begin
        self._on_room = on_room
        self._at_agents: set[int] = set()
        """The runs that have a place."""
        self._coming: set[int] = set()
        """The runs whose turns come: what their agents need is being read."""
        self._ahead: dict[int, asyncio.Future[bool]] = {}
        """The runs that wait for a place, oldest first. True: it has one. False: it gets none."""
        self._turns_since: dict[int, float] = {}
        """All turns of this process, by their runs: the monotonic second since which the chat has
        had its place. A run that follows in the chat inherits it."""
        self.freed = Rate()
        """The rate at which places became free lately."""
        self.more_due: set[int] = set()
        """The accounts that may have due runs for which there was no room."""
        self.closed = False
        self._expected, self._keeping = 0, 0
        """Two counts of room that is spoken for: runs that are being claimed or recorded just now,
        and places that are kept for runs which may follow others (`keep`)."""

    def room(self) -> int:
        """The number of runs that this process may claim now."""
        turns = 3 * self._ctx.rt.terms.work.concurrency - len(self._turns_since) - self._expected
        return max(0, min(self._idle(ahead=_AHEAD / 2), turns))

    def rooms(self) -> dict[int, int]:
        """The number of runs that may be claimed of each account, by the account; those whose rate
        limit leaves no room are left out."""
        if self.room() < 1:
            return {}
        rooms = {account: self._ctx.limiters[account].room for account in self._ctx.rt.mine}
        return {account: room for account, room in rooms.items() if room > 0}

    def _idle(self, *, ahead: float) -> int:
        """The number of places that are free now or, at the recent rate, will be within `ahead`
        seconds, less all that is spoken for."""
        if self.closed or not self._ctx.lease.holds():
            return 0
        places = self._ctx.rt.terms.work.concurrency
        soon = min(places, int(self.freed.rate(self._ctx.rt.clock.monotonic()) * ahead))
        taken = len(self._at_agents) + len(self._ahead) + len(self._coming)
        return places + soon - taken - self._expected - self._keeping

    @contextmanager
    def expecting(self, turns: int) -> Iterator[None]:
        """Count this many runs as spoken for until the body, which claims them, ends."""
        self._expected += turns
        try:
            yield
        finally:
            self._expected -= turns

    @contextmanager
    def reserved(self) -> Iterator[Claimant | None]:
        """Keep room for a run that intake may make running; None if there is no room."""
        if self.room() < 1:
            yield None
            return
        with self.expecting(1):
            yield self._ctx.claimant()

    def come(self, run: Run) -> None:
        """Count a turn that begins."""
        self._coming.add(run.id)
        self._turns_since[run.id] = self._ctx.rt.clock.monotonic()

    async def wait(self, run: Run) -> bool:
        """Wait for a place. False: none became free in time, or the process is leaving."""
        self._coming.discard(run.id)
        if self.closed:
            return False
        place: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._ahead[run.id] = place
        self._seat()
        if place.done():
            return place.result()
        try:
            async with asyncio.timeout(AHEAD_AT_MOST):
                return await place
        except TimeoutError:
            return False

    def _seat(self) -> None:
        """Give free places to the runs that wait for one."""
        while self._ahead and len(self._at_agents) < self._ctx.rt.terms.work.concurrency:
            run = next(iter(self._ahead))
            place = self._ahead.pop(run)
            if not place.done():
                self._at_agents.add(run)
                place.set_result(True)
        self._ctx.rt.observer.in_flight.set(len(self._at_agents))

    def agent_done(self, run: Run) -> None:
        """The agent of this run has returned: its place is free."""
        self.freed.add(self._ctx.rt.clock.monotonic())
        self._at_agents.discard(run.id)
        self.pass_on()

    def leave(self, run: Run) -> None:
        """Forget a turn that is over."""
        del self._turns_since[run.id]
        self._coming.discard(run.id)
        self._ahead.pop(run.id, None)
        self._at_agents.discard(run.id)

    def pass_on(self) -> None:
        """Use what may have become free: for runs that wait here, then for a further claim."""
        self._seat()
        if self.more_due & self.rooms().keys():
            self._on_room()

    def keep(self, run: Run) -> Claimant | None:
        """Keep a place, until `let_go`, for the run that follows in the chat if this one ends: it
        then needs no claim of its own. Returns the claimant of that run; None while all places are
        taken, if the account's rate limit leaves no room, and once the chat has had its place for
        long while others wait for one."""
        if self._idle(ahead=_AHEAD) < 1:
            return None
        kept = self._ctx.rt.clock.monotonic() - self._turns_since.get(run.id, 0.0)
        if not self._ctx.limiters[run.account].room or (self.more_due and kept > _KEPT):
            return None
        self._keeping += 1
        return self._ctx.claimant()

    def let_go(self) -> None:
        """Stop keeping the place: the run that follows takes it, or else anybody."""
        self._keeping -= 1

    def go_on(self, run: Run, follows: Case) -> None:
        """Begin the turn of the run that follows this one, which has ended."""
        self._begin(follows.run, follows)
        if run.id in self._turns_since:
            self._turns_since[follows.run.id] = self._turns_since[run.id]

    def close(self) -> None:
        """Give no more places; the runs that wait for one are unclaimed."""
        self.closed = True
        for place in self._ahead.values():
            if not place.done():
                place.set_result(False)


class Rate:
    """The rate of an event, as an average over about the last `_AHEAD` seconds."""

    def __init__(self) -> None:
        self._count, self._at = 0.0, 0.0

    def add(self, now: float) -> None:
        self._count, self._at = self._left(now) + 1, now

    def rate(self, now: float) -> float:
        """Events per second."""
        return self._left(now) / _AHEAD

    def _left(self, now: float) -> float:
        return self._count * exp((self._at - now) / _AHEAD)
