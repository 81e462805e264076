"""An agent that answers when the test lets it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from bot.domain.turn import Turn


@dataclass
class HeldAgent:
    """Keeps what it is asked; answers with the turn's text once the gate is open.

    `overlaps` counts moments in which two turns of one chat were under way.
    """

    turns: list[Turn] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    busy: set[int] = field(default_factory=set)
    overlaps: int = 0

    async def __call__(self, turn: Turn) -> str:
        self.turns.append(turn)
        self.overlaps += turn.chat.id in self.busy
        self.busy.add(turn.chat.id)
        self.asked.set()
        try:
            await self.gate.wait()
        finally:
            self.busy.discard(turn.chat.id)
        return turn.text

    @property
    def texts(self) -> list[str]:
        """What it was asked, turn by turn."""
        return [turn.text for turn in self.turns]


async def repeats(turn: Turn) -> str:
    """Answers with what was said."""
    return turn.text
