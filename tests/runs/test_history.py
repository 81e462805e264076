"""The history of a chat: every kind of agent finds it in its turn."""

from __future__ import annotations

import pytest

from bot.agents.function import load
from bot.domain.turn import Turn
from bot.threads import Threads
from tests.fakes.updates import Person
from tests.kit.conversation import post
from tests.world import World

CHAT = 700100251


def plain(turn: Turn) -> str:
    """Say what was said before, from a thread."""
    return " | ".join(said.text for said in turn.history) or "nothing yet"


async def awaited(turn: Turn) -> str:
    """The same on the loop."""
    return plain(turn)


@pytest.mark.parametrize("function", ["plain", "awaited"])
async def test_a_function_finds_what_was_said_before(world: World, function: str) -> None:
    running = await world.start(agent=load(f"{__name__}:{function}", Threads(1)))
    ada, bob = Person(CHAT), Person(CHAT + 1)
    for person in (ada, bob, ada):
        await post(running, person.text("hello"))
        await world.settled()
    assert world.telegram.texts(CHAT) == ["nothing yet", "hello | nothing yet"]
    assert world.telegram.texts(CHAT + 1) == ["nothing yet"]
