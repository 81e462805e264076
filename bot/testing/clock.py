"""A clock that a test sets forward."""

from __future__ import annotations

import asyncio

from bot.clock import SystemClock


class ClockInHand(SystemClock):
    """The machine's clock plus `offset` seconds; sleepers wake when it is set forward. SQLite
    asks this clock too."""

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = offset
        self._moved = asyncio.Event()

    def wall(self) -> float:
        return super().wall() + self.offset

    def monotonic(self) -> float:
        return super().monotonic() + self.offset

    def boot(self) -> tuple[str, float]:
        return super().boot()[0], self.monotonic()

    def advance(self, seconds: float) -> None:
        """Set the clock forward."""
        self.offset += seconds
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def sleep(self, seconds: float) -> None:
        ends = self.monotonic() + seconds
        while (left := ends - self.monotonic()) > 0:
            await self.moves(left)

    async def moves(self, within: float | None) -> None:
        """Return when it is set forward, or after so many seconds."""
        try:
            async with asyncio.timeout(within):
                await self._moved.wait()
        except TimeoutError:
            return
