"""A clock that a test can set forward, for a process and for its database."""

from __future__ import annotations

from sqlalchemy import TextClause, text

from bot.clock import SystemClock
from bot.testing.clock import ClockInHand


class Ticker:
    """The time of a fake, in epoch seconds, as a test sets it."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


class ShiftedClock(ClockInHand):
    """A clock in hand that may also stand, or be wrong.

    Stopped, it moves by `advance` alone: no test can be too slow for it. SQLite asks this clock;
    `now_as` makes a PostgreSQL database do the same.
    """

    def __init__(self, offset: float = 0.0) -> None:
        super().__init__(offset)
        self.wall_is_wrong_by = 0.0
        self.database_is_wrong_by = 0.0
        self._stopped_at: tuple[float, float] | None = None

    def wall(self) -> float:
        if self._stopped_at is None:
            return super().wall() + self.wall_is_wrong_by
        return self._stopped_at[0] + self.offset + self.wall_is_wrong_by

    def monotonic(self) -> float:
        if self._stopped_at is None:
            return super().monotonic()
        return self._stopped_at[1] + self.offset

    @property
    def stopped(self) -> bool:
        return self._stopped_at is not None

    def stop(self) -> None:
        """Stand still from now on."""
        self._stopped_at = SystemClock.wall(self), SystemClock.monotonic(self)

    def go_on(self) -> None:
        """Move again, from where it stands."""
        stood = self.monotonic()
        self._stopped_at = None
        self.advance(stood - self.monotonic())

    async def moves(self, within: float | None) -> None:
        await super().moves(None if self.stopped else within)


def now_as(clock: ShiftedClock) -> TextClause:
    """The statement that makes a PostgreSQL database tell the time as the clock does."""
    if clock.stopped:
        now = repr(clock.wall() + clock.database_is_wrong_by)
    else:
        ahead = clock.offset + clock.database_is_wrong_by
        now = f"extract(epoch FROM statement_timestamp()) + {ahead!r}"
    return text(
        "CREATE OR REPLACE FUNCTION answerback_now() RETURNS double precision "
        f"LANGUAGE sql STABLE AS $$ SELECT ({now})::float8 $$"
    )
