"""A person of the business answers with the WhatsApp Business app, beside the bot."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain.turn import Turn
from tests.fakes.meta import payloads
from tests.fakes.meta.server import DISPLAY, PERSON, StatusPlan
from tests.fakes.recording import Json
from tests.kit.agents import Held
from tests.kit.conversation import endings
from tests.kit.whatsapp_cloud import ALONE, taken
from tests.world import World

ON: dict[str, Any] = {**ALONE, "burst": "each"}


def echo(world: World, words: str, *, at: float = 0.0, **more: object) -> Json:
    wamid = world.meta.book.wamid(PERSON, ours=True)
    made = payloads.message(wamid, world.meta.now() + at, "text", {"body": words}, from_=DISPLAY)
    return {**made, "to": PERSON} | more


async def by_hand(world: World, *echoes: Json) -> None:
    change = payloads.change(field="smb_message_echoes", message_echoes=list(echoes))
    assert (await world.meta.deliver(payloads.envelope(change))).acknowledged


async def written(world: World, words: str, at: float = 0.0) -> None:
    stamp = str(int(world.meta.now() + at))
    message = world.meta.message(words) | {"timestamp": stamp}
    assert (await world.meta.deliver(world.meta.written_by(message))).acknowledged


async def test_what_a_human_answered_is_answered_by_nobody_else(world: World) -> None:
    agent = Held()
    await world.start(agent=agent, **ON)
    await written(world, "first")
    await agent.begun.wait()
    await written(world, "second")
    answer = echo(world, "I am on it", at=2)
    await by_hand(world, answer)
    await by_hand(world, answer, answer)
    agent.go.set()
    await world.settled()
    ended = await world.rows("SELECT ending, cause FROM runs ORDER BY id")
    assert [tuple(row) for row in ended] == [("answered", "human_answered")] * 2
    assert world.meta.messages() == []
    assert await world.rows("SELECT kind, state, text FROM outbox") == [
        ("operator", "sent", "I am on it")
    ]


async def test_the_bot_goes_on_with_what_is_written_afterwards_and_knows_the_humans_words(
    world: World,
) -> None:
    seen: list[list[str]] = []

    async def agent(turn: Turn) -> str:
        seen.append([line.text for line in turn.history])
        return f"re: {turn.text}"

    await world.start(agent=agent, **ON)
    await written(world, "first")
    await world.settled()
    await by_hand(world, echo(world, "by hand", at=2))
    await written(world, "second", at=4)
    await world.settled()
    assert seen == [[], ["first", "re: first", "by hand"]]
    assert world.meta.texts() == ["re: first", "re: second"]


async def test_a_message_that_comes_after_the_humans_answer_to_it_is_not_answered(
    world: World,
) -> None:
    agent = Held()
    agent.go.set()
    await world.start(agent=agent, **ON)
    await by_hand(world, echo(world, "by hand", at=60))
    for words, at in (("before", 30.0), ("at that moment", 60.0), ("after", 90.0)):
        await written(world, words, at)
    await world.settled()
    assert agent.texts == ["at that moment", "after"]
    assert await endings(world) == [
        ("before", "answered"),
        ("at that moment", "answered"),
        ("after", "answered"),
    ]


async def test_what_was_written_after_the_humans_answer_is_answered_though_that_is_told_later(
    world: World,
) -> None:
    agent = Held()
    await world.start(agent=agent, **ON)
    await written(world, "first")
    await agent.begun.wait()
    answer = echo(world, "I am on it", at=2)
    await written(world, "and this?", at=4)
    await by_hand(world, answer)
    agent.go.set()
    await world.settled()
    ended = await world.rows("SELECT cause FROM runs ORDER BY id")
    assert [row[0] for row in ended] == ["human_answered", "delivered"]
    assert world.meta.texts() == ["and this?"]


async def test_an_answer_that_has_begun_to_leave_leaves_whole(world: World) -> None:
    async def agent(turn: Turn) -> str:
        return "\n\n".join(f"{n} {turn.text} " + "word " * 700 for n in (1, 2))

    world.meta.plan = lambda _message: StatusPlan.nothing()
    await world.start(agent=agent, **ON)
    await written(world, "tell me all")
    [first] = await taken(world, 1)
    await by_hand(world, echo(world, "by hand", at=2))
    await world.meta.report(first.wamid, "sent")
    await world.settled()
    assert [text[0] for text in world.meta.texts()] == ["1", "2"]


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("reaction", {"reaction": {"message_id": "wamid.x", "emoji": "ok"}}),
        ("revoke", {"revoke": {"original_message_id": "wamid.x"}}),
    ],
)
async def test_what_is_no_answer_ends_nothing(world: World, kind: str, more: Json) -> None:
    agent = Held()
    await world.start(agent=agent, **ON)
    await written(world, "first")
    await agent.begun.wait()
    await by_hand(world, echo(world, "", at=2) | {"type": kind} | more)
    agent.go.set()
    await world.settled()
    assert len(world.meta.messages()) == 1


async def test_one_that_cannot_be_placed_or_read_costs_none_of_the_others(world: World) -> None:
    await world.start(agent=Held(), **ON)
    nobody, wordless = echo(world, "to nobody") | {"to": None}, echo(world, "") | {"text": None}
    await by_hand(world, nobody, wordless, echo(world, "", at=2) | {"type": "hologram"})
    assert len(await world.rows("SELECT 1 FROM outbox")) == 1
    kept = await world.rows("SELECT ignored, error FROM payloads ORDER BY id")
    assert sorted(map(str, kept)) == [
        "('by hand: it does not say to whom, or when', None)",
        "(None, 'a text without words')",
    ]
