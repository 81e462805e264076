"""Agents and questions to the rows for tests of WhatsApp."""

from __future__ import annotations

from typing import Any

from bot.domain.reply import Reply
from bot.domain.turn import Agent, Turn
from tests.fakes.twilio.book import Message
from tests.fakes.twilio.forms import PERSON
from tests.world import World

__all__ = [
    "CALM",
    "PERSON",
    "answering",
    "asked",
    "echo",
    "endings",
    "parts",
    "sent",
    "three_parts",
]

CALM: dict[str, Any] = {"lease_seconds": 1e9}
"""Settings of a process whose clock is set forward: its lease must not run out."""


async def echo(turn: Turn) -> str:
    return f"you said: {turn.text}"


def answering(reply: Reply | str) -> Agent:
    """An agent that always answers so."""

    async def answer(turn: Turn) -> Reply | str:
        assert turn.messages
        return reply

    return answer


async def three_parts(turn: Turn) -> str:
    """A reply that fills three messages, which begin with their number."""
    assert turn.messages
    return "\n\n".join(f"{number} " + "word " * 290 for number in (1, 2, 3))


async def endings(world: World) -> list[str]:
    """The endings of the runs, in the order in which they were made."""
    return [row[0] for row in await world.rows("SELECT ending FROM runs ORDER BY id")]


async def parts(world: World, kind: str = "reply") -> list[tuple[Any, ...]]:
    """(part, state, attempts, code) of what went out, in order."""
    sql = "SELECT part, state, attempts, code FROM outbox WHERE kind = :kind ORDER BY id"
    return [tuple(row) for row in await world.rows(sql, kind=kind)]


async def sent(world: World, count: int) -> list[Message]:
    """Wait until Twilio has so many messages of ours, and returns them."""
    await world.twilio.wait_for(lambda: len(world.twilio.messages()) >= count)
    found = world.twilio.messages()
    assert len(found) == count
    return found


async def asked(world: World, method: str, count: int) -> None:
    """Wait until Twilio was asked so often."""
    await world.twilio.wait_for(lambda: len(world.twilio.calls_of(method)) >= count)
