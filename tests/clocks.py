"""A clock that a test can set forward, for a process and for its database."""

from __future__ import annotations

import asyncio

import psycopg

from bot.clock import SystemClock


class ShiftedClock(SystemClock):
    """The machine's clock plus `offset` seconds; sleepers wake when it is set forward.

    SQLite asks this clock; `shift_database` does the same to a PostgreSQL database.
    """

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = offset
        self.wall_is_wrong_by = 0.0
        self._moved = asyncio.Event()

    def wall(self) -> float:
        return super().wall() + self.offset + self.wall_is_wrong_by

    def monotonic(self) -> float:
        return super().monotonic() + self.offset

    def boot(self) -> tuple[str, float]:
        name, since = super().boot()
        return name, since + self.offset

    def advance(self, seconds: float) -> None:
        """Set the clock forward."""
        self.offset += seconds
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def sleep(self, seconds: float) -> None:
        ends = self.monotonic() + seconds
        while (left := ends - self.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    await self._moved.wait()
            except TimeoutError:
                return


def shift_database(url: str, offset: float) -> None:
    """Make the clock of this PostgreSQL database run `offset` seconds ahead."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION answerback_now() RETURNS double precision "
            "LANGUAGE sql STABLE AS "
            f"$$ SELECT extract(epoch FROM statement_timestamp())::float8 + {float(offset)!r} $$"
        )
