"""What happens by the clock: heartbeat, sweep, repair. APScheduler drives it.

Nothing is kept in the scheduler: all state is rows, so a crash loses no job.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger


@dataclass(frozen=True, slots=True)
class Chore:
    """Something to do every `every` seconds; it handles its own failures."""

    name: str
    every: float
    do: Callable[[], Awaitable[object]]


class Schedule:
    """Runs chores: one instance of each at a time, missed beats fall together."""

    def __init__(self) -> None:
        self._scheduler = AsyncIOScheduler(timezone="UTC")

    def add(self, chore: Chore) -> None:
        """Do this from now on, first after one interval."""
        self._scheduler.add_job(
            chore.do,
            IntervalTrigger(seconds=chore.every, timezone="UTC"),
            id=chore.name,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
        )

    def start(self) -> None:
        """Begin. Needs a running loop."""
        self._scheduler.start()

    def stop(self) -> None:
        """Begin nothing more."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
