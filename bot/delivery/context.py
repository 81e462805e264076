"""The worker's context: the runtime plus lease, agent, calls under way and rate limits."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from bot.delivery.inflight import InFlightSends
from bot.delivery.rate_limit import RateLimiter
from bot.domain.ending import Ending
from bot.domain.errors import DatabaseUnavailable, StaleLease
from bot.domain.run import Run
from bot.domain.turn import Agent
from bot.leases.keeper import LeaseKeeper
from bot.leases.runtime import Runtime
from storage.engine.lane import Lane, Left
from storage.notify import READY
from storage.runs import Claimant
from storage.statements.tx import Tx
from storage.views.evidence import Case
from storage.views.history import History

_log = logging.getLogger("answerback.turn")
P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class Shared(Generic[Item, Result]):
    """A move of turns that has a lane: its form for a list, its form for one, its key."""

    together: Callable[[Tx, Sequence[Item]], Sequence[Result | Exception | Left]]
    alone: Callable[[Tx, Item], Result]
    chat: Callable[[Item], Hashable]


class Places(Protocol):
    """The places of this process's agents, as far as delivery and turns ask for them."""

    def agent_done(self, run: Run) -> None:
        """The agent of this run was called, and another one may be."""
        ...

    def keep(self, run: Run) -> Claimant | None:
        """Keep the place of this run, which may end, for the one that follows in its chat, until
        `let_go`: who claims that. None when the place is others'."""
        ...

    def let_go(self) -> None:
        """A place that was kept is to be taken by the run that follows, or by whoever comes."""
        ...

    def go_on(self, run: Run, follows: Case) -> None:
        """Begin the turn of the run that follows this one, which has ended, in its place."""
        ...


@dataclass(slots=True, eq=False)
class WorkerContext:
    """The tools of everything that works on turns. `limiters` has each account's rate limiter;
    `history` reads what was said in a chat before a run, and `reads_history` says that the agent
    wants it read before it is called. `places` are the worker's, which sets them."""

    rt: Runtime
    lease: LeaseKeeper
    sends: InFlightSends
    agent: Agent
    limiters: Mapping[int, RateLimiter]
    history: History
    reads_history: bool
    places: Places = field(init=False)
    _lanes: dict[Shared[Any, Any], Lane[Any, Any]] = field(default_factory=dict, init=False)

    def claimant(self) -> Claimant:
        """The claimant of runs for this process. Raises StaleLease without a lease."""
        terms = self.rt.terms.work
        return Claimant(self.lease.holder(), terms.lease.seconds, terms.run_deadline)

    async def persist(
        self, move: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Write what must not be lost: tried again while the database is away, until the
        lease is over. Raises StaleLease then."""
        return await self._while_held(partial(self.rt.db.write, move, *args, **kwargs))

    async def share(self, move: Shared[Item, Result], item: Item) -> Result:
        """As `persist`, in one transaction with whatever waits for the same move."""
        lane = self._lanes.get(move)
        if lane is None:
            lane = Lane(self.rt.db.write, move.together, move.alone, move.chat)
            self._lanes[move] = lane
        return await self._while_held(partial(lane.do, item))

    async def _while_held(self, write: Callable[[], Awaitable[T]]) -> T:
        tries = 0
        while True:
            try:
                return await write()
            except DatabaseUnavailable as error:
                if not self.lease.holds():
                    raise StaleLease("the lease ran out while the database was away") from error
                tries += 1
                wait = self.rt.retry.database.after(tries, self.rt.clock.jitter())
                await self.rt.clock.sleep(wait)

    def ended(self, run: Run, ending: Ending, *, ready: bool, follows: Case | None = None) -> None:
        """Count a run of ours that ended; `ready` says that something became due by it, for which
        somebody waits. The run that `follows` begins in its place."""
        if follows is not None:
            self.places.go_on(run, follows)
        self.rt.observer.endings.labels(ending.value).inc()
        took = max(0.0, self.rt.clock.wall() - run.created_at)
        self.rt.observer.run_seconds.labels(ending.value).observe(took)
        _log.info("the run ended: %s", ending)
        if ready:
            self.rt.wakeups.tell(READY)
        self.rt.moved(run.account, run.chat)
