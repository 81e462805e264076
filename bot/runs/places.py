"""Places: room for so many agents at work, and the turns that wait here for one of them.

A turn comes (what its agent needs is read), waits for a place, is at its agent, and leaves: its
answer is sent. What comes and what leaves keeps no place, so a process has at most three times as
many turns as places.
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
"""Seconds for which a chat with more to answer keeps its place, though others wait for one."""
_AHEAD = 0.3
"""Seconds of work that waits here for its place: more than a settlement or a claim takes. Half of
them are left to runs that follow in their chats, which cost no claim."""
AHEAD_AT_MOST = 1.0
"""Seconds after which a run that was claimed ahead is let go: the agents became slow."""


class AgentPlaces:
    """The places of this process, `concurrency` of them. `begin` begins the turn of a claimed run;
    `on_room` is called when there is room again for what may be due."""

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
        """The runs that have a place: their turns are before the end of their agents' calls."""
        self._coming: set[int] = set()
        """The runs whose turns begin: what an agent needs is read before it has a place."""
        self._ahead: dict[int, asyncio.Future[bool]] = {}
        """The runs that wait for a place, which came first first. Told False, they are let go."""
        self._turns_since: dict[int, float] = {}
        """All turns of this process, by their runs: the monotonic second since which the chat of
        each keeps its place, handed on to the run that follows there."""
        self.freed = Rate()
        """The places that became free lately."""
        self.more_due: set[int] = set()
        """The accounts of which runs may be due for which there was no room."""
        self.closed = False
        self._expected, self._keeping = 0, 0
        """Runs that are being claimed or recorded, and places kept for runs that may follow others:
        for both there is room no more."""

    def room(self) -> int:
        """The number of turns that may begin here now, or will in a moment."""
        turns = 3 * self._ctx.rt.terms.work.concurrency - len(self._turns_since) - self._expected
        return max(0, min(self._idle(ahead=_AHEAD / 2), turns))

    def rooms(self) -> dict[int, int]:
        """The accounts whose line at their platform is short enough, and for how many turns."""
        if self.room() < 1:
            return {}
        rooms = {account: self._ctx.limiters[account].room for account in self._ctx.rt.mine}
        return {account: room for account, room in rooms.items() if room > 0}

    def _idle(self, *, ahead: float) -> int:
        """The number of agents that may be called now, or so many seconds ahead: as many places
        will become free as did lately."""
        if self.closed or not self._ctx.lease.holds():
            return 0
        places = self._ctx.rt.terms.work.concurrency
        soon = min(places, int(self.freed.rate(self._ctx.rt.clock.monotonic()) * ahead))
        taken = len(self._at_agents) + len(self._ahead) + len(self._coming)
        return places + soon - taken - self._expected - self._keeping

    @contextmanager
    def expecting(self, turns: int) -> Iterator[None]:
        """Keep room for runs that may come; those that did are taken behind it."""
        self._expected += turns
        try:
            yield
        finally:
            self._expected -= turns

    @contextmanager
    def reserved(self) -> Iterator[Claimant | None]:
        """Keep room for a run that intake may make running; None where there is none."""
        if self.room() < 1:
            yield None
            return
        with self.expecting(1):
            yield self._ctx.claimant()

    def come(self, run: Run) -> None:
        """The turn of this run begins here."""
        self._coming.add(run.id)
        self._turns_since[run.id] = self._ctx.rt.clock.monotonic()

    async def wait(self, run: Run) -> bool:
        """Wait for a place. False when none became free in time, or we leave."""
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
        """Give the places that are free to those who wait for one."""
        while self._ahead and len(self._at_agents) < self._ctx.rt.terms.work.concurrency:
            run = next(iter(self._ahead))
            place = self._ahead.pop(run)
            if not place.done():
                self._at_agents.add(run)
                place.set_result(True)
        self._ctx.rt.observer.in_flight.set(len(self._at_agents))

    def agent_done(self, run: Run) -> None:
        """The agent of this run was called, and another one may be."""
        self.freed.add(self._ctx.rt.clock.monotonic())
        self._at_agents.discard(run.id)
        self.pass_on()

    def leave(self, run: Run) -> None:
        """The turn of this run is over."""
        del self._turns_since[run.id]
        self._coming.discard(run.id)
        self._ahead.pop(run.id, None)
        self._at_agents.discard(run.id)

    def pass_on(self) -> None:
        """A place may be free: it is the next one's."""
        self._seat()
        if self.more_due & self.rooms().keys():
            self._on_room()

    def keep(self, run: Run) -> Claimant | None:
        """Keep the place of this run, which may end, for the one that follows in its chat, until
        `let_go`: what goes on at once costs no claim. None while all agents are busy, or
        the account's line is full, and after a while in which others wait for a place."""
        if self._idle(ahead=_AHEAD) < 1:
            return None
        kept = self._ctx.rt.clock.monotonic() - self._turns_since.get(run.id, 0.0)
        if not self._ctx.limiters[run.account].room or (self.more_due and kept > _KEPT):
            return None
        self._keeping += 1
        return self._ctx.claimant()

    def let_go(self) -> None:
        """A place that was kept is to be taken by the run that follows, or by whoever comes."""
        self._keeping -= 1

    def go_on(self, run: Run, follows: Case) -> None:
        """Begin the turn of the run that follows this one, which has ended, in its place."""
        self._begin(follows.run, follows)
        if run.id in self._turns_since:
            self._turns_since[follows.run.id] = self._turns_since[run.id]

    def close(self) -> None:
        """Give no more places, and let go who waits for one."""
        self.closed = True
        for place in self._ahead.values():
            if not place.done():
                place.set_result(False)


class Rate:
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
