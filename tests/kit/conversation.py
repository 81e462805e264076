"""Agents that keep count, and short words for what the tests of the flows wait for."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.clock import SystemClock
from bot.domain.turn import Turn
from tests.fakes.updates import Person
from tests.world import Running, World

ADA, BOB = 700100201, 700100202
SHORT: dict[str, Any] = {"lease_seconds": 1.5, "heartbeat_seconds": 0.3}
"""A lease that a test can wait for."""


@dataclass
class Gated:
    """Says what it was told, after `go`. `calls` counts by text; `cut` are those cancelled."""

    prefix: str = "re: "
    calls: Counter[str] = field(default_factory=Counter)
    cut: list[str] = field(default_factory=list)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, turn: Turn) -> str:
        self.calls[turn.text] += 1
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cut.append(turn.text)
            raise
        return f"{self.prefix}{turn.text}"


@dataclass
class Echo:
    """Says what it was told, and counts."""

    calls: Counter[str] = field(default_factory=Counter)

    async def __call__(self, turn: Turn) -> str:
        self.calls[turn.text] += 1
        return f"re: {turn.text}"


async def moment(seconds: float = 0.02) -> None:
    """Let real time pass, for things that a clock of ours does not move."""
    await SystemClock().sleep(seconds)


async def endings(world: World) -> list[tuple[str, str]]:
    """(text, ending) of every message that has a run, oldest first."""
    rows = await world.rows(
        "SELECT i.text, coalesce(r.ending, r.state) FROM inbound i JOIN runs r ON r.id = i.run "
        "ORDER BY i.id"
    )
    return [(text, ending) for text, ending in rows]


async def until_running(world: World, runs: int = 1) -> None:
    """Wait until so many runs are under way."""
    sql = "SELECT count(*) FROM runs WHERE state = 'running'"
    await world.until(sql, lambda rows: rows[0][0] == runs)


async def post(running: Running, *updates: dict[str, Any]) -> list[int]:
    """Deliver updates one after the other; the status codes."""
    return [(await running.post_update(update)).status_code for update in updates]


def people(count: int, first: int = 700_200_001) -> Sequence[Person]:
    """So many persons in chats of their own."""
    return [Person(first + n) for n in range(count)]
