"""Limits and private bots: refused politely, told once, recorded, and nothing in silence."""

from __future__ import annotations

import pytest

from bot.texts import Text, Words
from tests.fakes.updates import Person, entity, supergroup, user
from tests.kit.agents import Held, repeats
from tests.world import World

CHAT = 700100271
WORDS = Words.load()
REFUSED = "SELECT text, ignored FROM inbound WHERE ignored IS NOT NULL ORDER BY id"


async def test_a_flood_is_told_once_and_every_refused_message_is_recorded(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent, chat_messages_per_minute=3)
    ada = Person(CHAT)
    for number in range(6):
        await process.post_update(ada.text(f"{number}"))
    agent.go.set()
    await world.settled()
    assert "\n".join(agent.texts).split("\n") == ["0", "1", "2"]
    assert world.telegram.texts(CHAT).count(WORDS.say(Text.TOO_FAST)) == 1
    refused = [(str(n), "too_fast") for n in (3, 4, 5)]
    assert [tuple(row) for row in await world.rows(REFUSED)] == refused


async def test_the_next_flood_is_told_again_and_a_quiet_person_is_answered(world: World) -> None:
    process = await world.start(agent=repeats, chat_messages_per_minute=1, lease_seconds=600)
    ada = Person(CHAT)
    for round_number in range(2):
        for text in ("a", "b"):
            await process.post_update(ada.text(f"{text}{round_number}"))
            await world.settled()
        ada.at += 61
        world.advance(61)
    texts = world.telegram.texts(CHAT)
    assert texts.count(WORDS.say(Text.TOO_FAST)) == 2
    assert [t for t in texts if t in ("a0", "a1")] == ["a0", "a1"]


async def test_a_backlog_that_comes_at_once_was_not_written_at_once(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent, chat_messages_per_minute=3)
    ada = Person(CHAT)
    for number in range(9):
        await process.post_update(ada.text(f"{number}"))
        ada.at += 60
    assert await world.rows(REFUSED) == []


async def test_what_a_group_says_among_itself_uses_up_nothing(world: World) -> None:
    process = await world.start(agent=repeats, chat_messages_per_minute=2)
    ada = Person(CHAT, supergroup(-1007000000801))
    for number in range(5):
        await process.post_update(ada.text(f"chatter {number}"))
    text = "@relay_test_bot hello"
    await process.post_update(ada.text(text, entity("mention", text, "@relay_test_bot")))
    await world.settled()
    assert world.telegram.texts(-1007000000801) == [text]


async def test_no_more_than_so_many_messages_wait(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent, chat_waiting_max=2)
    ada = Person(CHAT)
    for number in range(5):
        await process.post_update(ada.text(f"{number}"))
    agent.go.set()
    await world.settled()
    assert agent.texts == ["0", "1\n2"]
    assert world.telegram.texts(CHAT).count(WORDS.say(Text.TOO_MANY_WAITING)) == 1
    assert [row[0] for row in await world.rows(REFUSED)] == ["3", "4"]


async def test_so_many_turns_a_day_and_the_next_day_again(world: World) -> None:
    process = await world.start(agent=repeats, chat_turns_per_day=2)
    ada = Person(CHAT)
    for number in range(4):
        await process.post_update(ada.text(f"{number}"))
        await world.settled()
    await process.die()
    world.advance(86_401)
    process = await world.start(agent=repeats, chat_turns_per_day=2)
    await process.post_update(ada.text("tomorrow"))
    await world.settled()
    expected = ["0", "1", WORDS.say(Text.DAILY_LIMIT), "tomorrow"]
    assert world.telegram.texts(CHAT) == expected


@pytest.mark.parametrize("allowed", [str(CHAT), "@Ada_L", "@other, 700100271"])
async def test_a_private_bot_answers_whom_it_knows(world: World, allowed: str) -> None:
    process = await world.start(agent=repeats, allowed=allowed)
    ada = Person(CHAT, sender=user(CHAT, username="ada_l"))
    await process.post_update(ada.text("hello"))
    await world.settled()
    assert world.telegram.texts(CHAT) == ["hello"]


async def test_a_private_bot_tells_others_once(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent, allowed="1, +15550100001")
    ada = Person(CHAT)
    for text in ("hello", "hello?", "/status"):
        await process.post_update(ada.text(text))
        await world.settled()
    assert world.telegram.texts(CHAT) == [WORDS.say(Text.NOT_ALLOWED)]
    assert agent.turns == []
    assert {row[1] for row in await world.rows(REFUSED)} == {"not_allowed"}


@pytest.mark.parametrize("allowed", ["+15550100016", "whatsapp:+15550100016"])
async def test_a_private_bot_knows_numbers(world: World, allowed: str) -> None:
    await world.start(agent=repeats, allowed=allowed)
    await world.twilio.inbound("hello", from_="whatsapp:+15550100016")
    await world.twilio.inbound("hello", from_="whatsapp:+15550100017")
    await world.settled()
    texts = {m.to: m.body for m in world.twilio.messages()}
    assert texts == {
        "whatsapp:+15550100016": "hello",
        "whatsapp:+15550100017": WORDS.say(Text.NOT_ALLOWED),
    }


async def test_who_opts_out_hears_the_confirmation_and_nothing_after_it(world: World) -> None:
    agent = Held()
    await world.start(agent=agent, chat_messages_per_minute=2)
    await world.twilio.inbound("think about it")
    await agent.begun.wait()
    await world.twilio.inbound("and this")
    await world.twilio.inbound("and that is too fast")
    await world.twilio.inbound("STOP")
    await world.settled()
    for text in ("hello?", "help", "STOP"):
        await world.twilio.inbound(text)
    agent.go.set()
    await world.settled()
    told = [t for t in world.twilio.texts() if t != WORDS.say(Text.TOO_FAST)]
    assert told == [WORDS.say(Text.OPTED_OUT)]
    assert world.twilio.texts()[-1] == WORDS.say(Text.OPTED_OUT)
    assert agent.texts == ["think about it"]


async def test_start_ends_an_opt_out(world: World) -> None:
    await world.start(agent=repeats)
    for text in ("STOP", "not heard", "START", "heard"):
        await world.twilio.inbound(text)
        await world.settled()
    expected = [WORDS.say(Text.OPTED_OUT), WORDS.say(Text.OPTED_IN), "heard"]
    assert world.twilio.texts() == expected
