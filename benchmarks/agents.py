"""Agents for the benchmarks. A stamp is `time.monotonic()`: one clock for all processes."""

from __future__ import annotations

import asyncio
import random
import time

from bot.api import Turn


async def stamp(turn: Turn) -> str:
    """The time at which the turn began here."""
    return f"{turn.text} {time.monotonic()!r}"


async def hang_first(turn: Turn) -> str:
    """The first attempt never ends; the next one says when it began."""
    if turn.attempt == 1:
        await asyncio.sleep(3600.0)
    return await stamp(turn)


async def busy(turn: Turn) -> str:
    """Takes up to 0.3 seconds, as a quick model does."""
    await asyncio.sleep(random.random() * 0.3)
    return f"re: {turn.text}"
