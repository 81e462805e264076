"""A clock that a test can set forward, for a process and for its database."""

from __future__ import annotations

from sqlalchemy import URL, text

from bot.clock import SystemClock
from bot.testing.clock import ClockInHand
from storage.engine.database import Database
from storage.statements.tx import Tx


class Ticker:
    """The time of a fake, in epoch seconds, as a test sets it."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


class ShiftedClock(ClockInHand):
    """A clock in hand that may also stand, or be wrong.

    Stopped, it moves by `advance` alone: no test can be too slow for it. SQLite asks this clock;
    `PostgresClock` makes a PostgreSQL database do the same.
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


class PostgresClock:
    """The clock of a PostgreSQL database, which tells the time as `clock` does.

    How far ahead it is stands in a sequence: to set that is no change of a function, after which
    every session would plan its statements anew.
    """

    def __init__(self, clock: ShiftedClock) -> None:
        self._clock = clock
        self._made: tuple[URL, bool] | None = None

    def set(self, db: Database) -> None:
        """Let this database tell the time as the clock does now."""
        made = (db.url, self._clock.stopped)
        db.now_sync(self._write, there=made == self._made)
        self._made = made

    def _write(self, tx: Tx, *, there: bool) -> None:
        clock = self._clock
        ahead = clock.database_is_wrong_by + (clock.wall() if clock.stopped else clock.offset)
        if not there:
            for statement in (_AHEAD, _STANDING if clock.stopped else _RUNNING):
                tx.execute(statement)
        tx.execute(_SET, {"steps": round(ahead * _STEPS)})


_STEPS = 1 << 22
"""Steps of a second: exact for every time that a double tells after 2004."""
_AHEAD = text("CREATE SEQUENCE IF NOT EXISTS tests_are_ahead MINVALUE -9000000000000000")
_SET = text("SELECT setval('tests_are_ahead', :steps)")
_TOLD = f"pg_sequence_last_value('tests_are_ahead')::float8 / {_STEPS}"
_FUNCTION = (
    "CREATE OR REPLACE FUNCTION answerback_now() RETURNS double precision "
    "LANGUAGE sql STABLE AS $$ SELECT {} $$"
)
_STANDING = text(_FUNCTION.format(_TOLD))
_RUNNING = text(_FUNCTION.format(f"extract(epoch FROM statement_timestamp())::float8 + {_TOLD}"))
