"""The agent of Answerback in a storm: it does its errand."""

from __future__ import annotations

import asyncio

from benchmarks.proof.errands import Errand
from bot.api import Turn

_ROOM = {"whatsapp": 1500}
"""Characters that fill a message of a channel, where it is not the usual."""
_USUAL = 3900


async def answer(turn: Turn) -> str:
    """As long as it takes, and in as many parts."""
    errand = Errand.read(turn.text)
    await asyncio.sleep(errand.takes)
    room = _ROOM.get(turn.chat.channel, _USUAL)
    parts = errand.answer(turn.attempt)
    return "\n\n".join(part.ljust(room, ".") for part in parts) if len(parts) > 1 else parts[0]
