"""Agents that say what they were told: at once, or when the test lets them."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from bot.domain.turn import Turn


async def repeats(turn: Turn) -> str:
    """Says what it was told, and nothing else."""
    return turn.text


@dataclass
class Echo:
    """Says what it was told, and counts by text."""

    calls: Counter[str] = field(default_factory=Counter)

    async def __call__(self, turn: Turn) -> str:
        self.calls[turn.text] += 1
        return f"re: {turn.text}"


@dataclass
class Gated:
    """Says what it was told, after `go`.

    `calls` counts by text; `cut` are the texts of those that were cancelled; `overlaps` counts
    moments in which two turns of one chat were under way.
    """

    prefix: str = "re: "
    turns: list[Turn] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    cut: list[str] = field(default_factory=list)
    busy: set[int] = field(default_factory=set)
    overlaps: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, turn: Turn) -> str:
        self.turns.append(turn)
        self.calls[turn.text] += 1
        self.overlaps += turn.chat.id in self.busy
        self.busy.add(turn.chat.id)
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cut.append(turn.text)
            raise
        finally:
            self.busy.discard(turn.chat.id)
        return f"{self.prefix}{turn.text}"

    @property
    def texts(self) -> list[str]:
        """The questions that it was asked, turn by turn."""
        return [turn.text for turn in self.turns]


@dataclass
class Held(Gated):
    """A gated agent that says what it was told, and nothing else."""

    prefix: str = ""
