"""The worker's context: the runtime plus lease, agent, calls under way and rate limits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

from bot.delivery.inflight import InFlightSends
from bot.delivery.rate_limit import RateLimiter
from bot.domain.ending import Ending
from bot.domain.errors import DatabaseUnavailable, StaleLease
from bot.domain.run import Run
from bot.domain.turn import Agent
from bot.leases.keeper import LeaseKeeper
from bot.leases.runtime import Runtime
from storage.engine.tx import Tx
from storage.notify import READY
from storage.views.history import History

_log = logging.getLogger("answerback.turn")
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """Where turns are worked on. `limiters` has each account's rate limiter; `history` reads
    what was said in a chat before a run, and `reads_history` says that the agent wants it read
    before it is called."""

    rt: Runtime
    lease: LeaseKeeper
    sends: InFlightSends
    agent: Agent
    limiters: Mapping[int, RateLimiter]
    history: History
    reads_history: bool

    async def persist(
        self, move: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Write what must not be lost: tried again while the database is away, until the
        lease is over. Raises StaleLease then."""
        tries = 0
        while True:
            try:
                return await self.rt.db.write(move, *args, **kwargs)
            except DatabaseUnavailable as error:
                if not self.lease.holds():
                    raise StaleLease("the lease ran out while the database was away") from error
                tries += 1
                wait = self.rt.retry.database.after(tries, self.rt.clock.jitter())
                await self.rt.clock.sleep(wait)

    def ended(self, run: Run, ending: Ending) -> None:
        """Count a run of ours that ended, and wake who waits for the next."""
        self.rt.observer.endings.labels(ending.value).inc()
        took = max(0.0, self.rt.clock.wall() - run.created_at)
        self.rt.observer.run_seconds.labels(ending.value).observe(took)
        _log.info("the run ended: %s", ending)
        self.rt.wakeups.tell(READY)
