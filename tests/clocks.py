"""A clock that a test can set forward, for a process and for its database."""

from __future__ import annotations

import asyncio

import psycopg

from bot.clock import SystemClock


class Ticker:
    """The time of a fake, in epoch seconds, as a test sets it."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


class ShiftedClock(SystemClock):
    """The machine's clock plus `offset` seconds; sleepers wake when it is set forward.

    Stopped, it moves by `advance` alone: no test can be too slow for it. SQLite asks this clock;
    `set_database` does the same to a PostgreSQL database.
    """

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = offset
        self.wall_is_wrong_by = 0.0
        self.database_is_wrong_by = 0.0
        self._moved = asyncio.Event()
        self._stopped_at: tuple[float, float] | None = None

    def wall(self) -> float:
        wall, _ = self._stopped_at or (super().wall(), 0.0)
        return wall + self.offset + self.wall_is_wrong_by

    def monotonic(self) -> float:
        _, since_boot = self._stopped_at or (0.0, super().monotonic())
        return since_boot + self.offset

    def boot(self) -> tuple[str, float]:
        return super().boot()[0], self.monotonic()

    @property
    def stopped(self) -> bool:
        return self._stopped_at is not None

    def stop(self) -> None:
        """Stand still from now on."""
        self._stopped_at = super().wall(), super().monotonic()

    def go_on(self) -> None:
        """Move again, from where it stands."""
        stood = self.monotonic()
        self._stopped_at = None
        self.advance(stood - self.monotonic())

    def advance(self, seconds: float) -> None:
        """Set the clock forward."""
        self.offset += seconds
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def sleep(self, seconds: float) -> None:
        ends = self.monotonic() + seconds
        while (left := ends - self.monotonic()) > 0:
            try:
                async with asyncio.timeout(None if self.stopped else left):
                    await self._moved.wait()
            except TimeoutError:
                return


def set_database(url: str, clock: ShiftedClock) -> None:
    """Make this PostgreSQL database tell the time as the clock does."""
    if clock.stopped:
        _define_now(url, repr(clock.wall() + clock.database_is_wrong_by))
    else:
        shift_database(url, clock.offset + clock.database_is_wrong_by)


def shift_database(url: str, offset: float) -> None:
    """Make the clock of this PostgreSQL database run `offset` seconds ahead."""
    _define_now(url, f"extract(epoch FROM statement_timestamp()) + {float(offset)!r}")


def _define_now(url: str, now: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION answerback_now() RETURNS double precision "
            f"LANGUAGE sql STABLE AS $$ SELECT ({now})::float8 $$"
        )
