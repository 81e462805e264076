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
from storage.engine.lane import Lane, LeftOut
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
    """A move that has a lane (`storage/engine/lane.py`): its form for a list, its form for one, and
    the chat of an item, by which items keep their order."""

    together: Callable[[Tx, Sequence[Item]], Sequence[Result | Exception | LeftOut]]
    alone: Callable[[Tx, Item], Result]
    chat: Callable[[Item], Hashable]


class Places(Protocol):
    """The places of this process (`bot/runs/places.py`), as far as turns and delivery use them."""

    def agent_done(self, run: Run) -> None:
        """The agent of this run has returned: its place is free."""
        ...

    def keep(self, run: Run) -> Claimant | None:
        """Keep a place, until `let_go`, for the run that follows in the chat if this one ends.
        Returns the claimant of that run; None if no place can be kept."""
        ...

    def let_go(self) -> None:
        """Stop keeping the place: the run that follows takes it, or else anybody."""
        ...

    def go_on(self, run: Run, follows: Case) -> None:
        """Begin the turn of the run that follows this one, which has ended."""
        ...


@dataclass(slots=True, eq=False)
class WorkerContext:
    """The tools of everything that works on turns. `limiters` are the rate limiters, by account.
    `history` reads what was said in a chat before a run; `reads_history`: the agent wants that read
    before it is called. `places` is set by the worker."""

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
        """Make a move that must not be lost: it is tried again while the database is away, until
        the lease is over. Raises StaleLease then."""
        return await self._while_held(partial(self.rt.db.write, move, *args, **kwargs))

    async def share(self, move: Shared[Item, Result], item: Item) -> Result:
        """As `persist`, in one transaction with all others that wait for the same move."""
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
        """Count and log a run of ours that ended, and wake whoever waits for that. `ready`:
        something became due by it. The run that `follows` begins at once."""
        if follows is not None:
            self.places.go_on(run, follows)
        self.rt.observer.endings.labels(ending.value).inc()
        took = max(0.0, self.rt.clock.wall() - run.created_at)
        self.rt.observer.run_seconds.labels(ending.value).observe(took)
        _log.info("the run ended: %s", ending)
        if ready:
            self.rt.wakeups.tell(READY)
        self.rt.moved(run.account, run.chat)
