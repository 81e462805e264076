"""An agent that fails is told to operators and its builder, and never to the chat."""

from __future__ import annotations

import pytest

from bot.domain.errors import AgentFailed
from bot.domain.turn import Agent, Turn
from bot.texts import Text, Words
from tests.fakes.updates import Person
from tests.world import World

CHAT = 700100224
SAID = "cancel my appointment"
WHY = "SELECT why FROM events WHERE what = 'failed'"


async def offline(turn: Turn) -> str:
    raise LookupError("the shop is offline since 2019")


async def quoting(turn: Turn) -> str:
    raise LookupError(f"nothing known of {turn.text}")


async def quoting_a_result(turn: Turn) -> str:
    found = await turn.step("look up", lambda: {"name": "Hildegard"})
    raise LookupError(f"no such customer: {found['name']}")


async def without_await(turn: Turn) -> str:
    taking = turn.step("look up", lambda: 1)
    return f"Found: {taking}"


async def refusing(turn: Turn) -> str:
    raise AgentFailed("its server says: cancel is not allowed")


@pytest.mark.parametrize(
    ("agent", "why"),
    [
        (offline, "LookupError: the shop is offline since 2019 (tests/runs/test_agent_faults.py:"),
        (quoting, "LookupError (tests/runs/test_agent_faults.py:"),
        (quoting_a_result, "LookupError (tests/runs/test_agent_faults.py:"),
        (refusing, "AgentFailed: its server says: cancel is not allowed"),
        (without_await, "AgentFailed: 1 step(s) were never awaited and are not done: write `await"),
    ],
)
async def test_operators_read_why_an_agent_failed_without_a_word_of_the_person(
    world: World, agent: Agent, why: str
) -> None:
    process = await world.start(agent=agent, max_failures=1)
    await process.post_update(Person(CHAT).text(SAID))
    await world.settled()
    [(kept,)] = await world.rows(WHY)
    assert kept.startswith(why)
    assert world.telegram.texts(CHAT) == [Words.load().say(Text.APOLOGY)]


async def test_a_step_that_was_not_awaited_is_told_and_the_answer_leaves(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def agent(turn: Turn) -> str:
        _forgotten = turn.step("note it", lambda: 1)
        return "Noted."

    process = await world.start(agent=agent)
    await process.post_update(Person(CHAT).text(SAID))
    await world.settled()
    assert world.telegram.texts(CHAT) == ["Noted."]
    [line] = [message for message in caplog.messages if "never awaited" in message]
    assert "1 step(s) were never awaited and are not done: write `await turn.step(...)`" in line
