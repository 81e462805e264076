"""Commands of people to the bot itself: stop, status, help, again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bot.domain.turn import Turn
from bot.texts import Text, Words
from storage import chats
from tests.fakes.updates import Person, entity, supergroup
from tests.kit.agents import Held, repeats
from tests.world import World

CHAT = 700100231
WORDS = Words.load()
ENDINGS = "SELECT ending FROM runs ORDER BY id"


def say(text: Text, language: str = "en", **values: int | str) -> str:
    return WORDS.say(text, language, **values)


async def test_stop_withdraws_what_runs_and_waits_and_a_repeat_of_it_does_nothing(
    world: World,
) -> None:
    agent = Held()
    one = await world.start(agent=agent)
    two = await world.start(agent=agent)
    ada, bob = Person(CHAT), Person(700100232)
    await one.post_update(ada.text("write a book"))
    await one.post_update(bob.text("and mine"))
    await world.until("SELECT count(*) FROM runs WHERE attempts > 0", lambda r: r[0][0] == 2)
    await one.post_update(ada.text("a long one"))
    stop = ada.command("/stop")
    for process in (two, one, two):
        assert (await process.post_update(stop)).status_code == 200
    await world.until(ENDINGS, lambda rows: [r[0] for r in rows].count("withdrawn") == 2)
    agent.go.set()
    await world.settled()
    assert world.telegram.texts(CHAT) == [say(Text.STOPPED)]
    assert world.telegram.texts(700100232) == ["and mine"]


async def test_the_message_after_a_stop_is_answered_as_usual(world: World) -> None:
    process = await world.start(agent=repeats)
    ada = Person(CHAT)
    await process.post_update(ada.command("/stop"))
    await process.post_update(ada.text("hello"))
    await world.settled()
    assert sorted(world.telegram.texts(CHAT)) == sorted([say(Text.NOTHING_TO_STOP), "hello"])


@pytest.mark.parametrize(
    ("sent", "text"),
    [("/start", Text.WELCOME), ("/start ", Text.WELCOME), ("/status", Text.STATUS_IDLE)],
)
async def test_commands_answer_by_themselves(world: World, sent: str, text: Text) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    await process.post_update(Person(CHAT).command(sent))
    await world.settled()
    assert world.telegram.texts(CHAT) == [say(text)]
    assert agent.turns == []


async def test_help_names_slashes_on_telegram_and_words_on_whatsapp(world: World) -> None:
    await world.start(agent=repeats)
    process = world.running[0]
    await process.post_update(Person(CHAT).command("/help"))
    await world.twilio.inbound("Help")
    await world.settled()
    slashes, words = (WORDS.help("en", by_words=way, data=True) for way in (False, True))
    assert world.telegram.texts(CHAT) == [slashes]
    assert world.twilio.texts() == [words]
    assert "/forget" in slashes
    assert "forget me" in words


async def test_status_says_whether_it_is_worked_on_waiting_or_paused(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    ada = Person(CHAT)
    await process.post_update(ada.text("think"))
    await process.post_update(ada.command("/status"))
    await world.telegram.record.wait_for(lambda: len(world.telegram.texts(CHAT)) == 1)
    await process.process.rt.db.write(chats.pause, agent.turns[0].chat.id, None)
    await process.post_update(ada.command("/status"))
    await world.telegram.record.wait_for(lambda: len(world.telegram.texts(CHAT)) == 2)
    assert world.telegram.texts(CHAT) == [say(Text.STATUS_WORKING), say(Text.STATUS_PAUSED)]


async def test_messages_that_wait_together_are_counted_one_by_one(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    ada = Person(CHAT)
    await process.post_update(ada.text("one"))
    await agent.begun.wait()
    for text in ("two", "three"):
        await process.post_update(ada.text(text))
    rows = await world.rows("SELECT state, messages FROM runs ORDER BY id")
    assert [tuple(row) for row in rows] == [("running", 1), ("waiting", 2)]


async def test_retry_makes_one_new_run_and_then_says_that_there_is_nothing(world: World) -> None:
    broken = True

    async def agent(turn: Turn) -> str:
        if broken:
            raise RuntimeError("out of order")
        return f"answer to {turn.text}"

    process = await world.start(agent=agent, max_failures=1)
    ada = Person(CHAT)
    await process.post_update(ada.text("please"))
    await world.settled()
    broken = False
    await process.post_update(ada.command("/retry"))
    await world.settled()
    await process.post_update(ada.command("/retry"))
    await world.settled()
    assert sorted(world.telegram.texts(CHAT)[1:3]) == ["I'm trying again.", "answer to please"]
    assert world.telegram.texts(CHAT)[3:] == [say(Text.NOTHING_TO_RETRY)]
    assert await world.rows(ENDINGS) == [("apologised",), ("answered",)]


async def test_on_whatsapp_the_word_of_the_language_asks_for_another_try(world: World) -> None:
    broken = True

    async def agent(turn: Turn) -> str:
        if broken:
            raise RuntimeError("out of order")
        return f"answer to {turn.text}"

    await world.start(agent=agent, max_failures=1)
    await world.twilio.inbound("please")
    await world.settled()
    [apology] = world.twilio.texts()
    assert "“try again”" in apology
    broken = False
    await world.twilio.inbound("Try again!")
    await world.settled()
    assert sorted(world.twilio.texts()[1:]) == ["I'm trying again.", "answer to please"]


async def test_what_was_tried_again_is_no_subject_of_the_word_any_more(world: World) -> None:
    asked: list[str] = []

    async def agent(turn: Turn) -> str:
        asked.append(turn.text)
        if len(asked) == 1:
            raise RuntimeError("out of order")
        return f"answer to {turn.text}"

    await world.start(agent=agent, max_failures=1)
    for words in ("a poem, please", "try again", "Try again!"):
        await world.twilio.inbound(words)
        await world.settled()
    assert asked == ["a poem, please", "a poem, please", "Try again!"]
    assert world.twilio.texts()[-1] == "answer to Try again!"


async def test_a_stop_word_is_a_word_while_nothing_can_be_stopped(world: World) -> None:
    agent = Held()
    await world.start(agent=agent)
    await world.twilio.inbound("cancel")
    await agent.begun.wait()
    await world.twilio.inbound("Cancel.")
    await world.until(ENDINGS, lambda rows: rows[0][0] == "withdrawn")
    await world.settled()
    assert agent.texts == ["cancel"]
    assert world.twilio.texts() == [say(Text.STOPPED)]


async def test_words_can_be_turned_off(world: World) -> None:
    await world.start(agent=repeats, command_words=False)
    await world.twilio.inbound("status")
    await world.settled()
    assert world.twilio.texts() == ["status"]


async def test_b55_in_a_group_only_a_command_to_us_is_one(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    ada = Person(700100233, supergroup(-1007000000501))
    for sent in ("/status@relay_test_bot", "/STATUS@Relay_Test_Bot"):
        await process.post_update(ada.text(sent, entity("bot_command", sent, sent)))
        await world.settled()
    for sent in ("/status@other_bot", "/status"):
        response = await process.post_update(ada.text(sent, entity("bot_command", sent, sent)))
        assert response.status_code == 200
    await world.settled()
    assert world.telegram.texts(-1007000000501) == [say(Text.STATUS_IDLE)] * 2
    assert await world.rows("SELECT count(*) FROM runs") == [(0,)]
    assert await world.rows("SELECT ignored, command FROM inbound ORDER BY id") == [
        ("command", "status"),
        ("command", "status"),
        ("other_bot", None),
        ("not_addressed", None),
    ]


async def test_people_read_their_own_language(world: World) -> None:
    process = await world.start(agent=repeats)
    sender = {"id": CHAT, "is_bot": False, "first_name": "Ada", "language_code": "pt-br"}
    ada = Person(CHAT, sender=sender)
    await process.post_update(ada.command("/status"))
    await world.settled()
    assert world.telegram.texts(CHAT) == [say(Text.STATUS_IDLE, "pt")]


async def test_the_menu_of_commands_is_set_in_every_language(world: World) -> None:
    world.first_start = True
    await world.start(agent=repeats)
    record = world.telegram.record
    await record.wait_for(lambda: len(record.of("setMyCommands")) == len(WORDS.languages) + 1)
    menus = {c.params.get("language_code", ""): c.params for c in record.of("setMyCommands")}
    assert menus.keys() == {"", *WORDS.languages}
    assert {len(menu["commands"]) for menu in menus.values()} == {7}
    assert record.violations == []


async def test_the_menu_is_set_again_when_its_words_change_and_not_at_every_start(
    world: World,
) -> None:
    process = await world.start(agent=repeats)
    [introduction] = process.process.introductions
    await introduction.introduce()
    assert world.telegram.calls_of("setMyCommands") == []
    other = Words.load(default="de")
    introduction.rt = replace(introduction.rt, words=other)
    await introduction.introduce()
    assert len(world.telegram.calls_of("setMyCommands")) == len(WORDS.languages) + 1
    await introduction.introduce()
    assert len(world.telegram.calls_of("setMyCommands")) == len(WORDS.languages) + 1


async def test_a_stop_between_two_parts_lets_no_further_part_out(world: World) -> None:
    started = asyncio.Event()

    async def agent(turn: Turn) -> str:
        started.set()
        return "\n\n".join(f"{n} " + "x" * 3000 for n in range(3))

    process = await world.start(agent=agent)
    ada = Person(CHAT)
    await process.post_update(ada.text("three parts"))
    await world.telegram.record.wait_for(lambda: len(world.telegram.texts(CHAT)) == 1)
    await process.post_update(ada.command("/stop"))
    await world.settled()
    assert [text[:2] for text in world.telegram.texts(CHAT)] == ["0 ", say(Text.STOPPED)[:2]]
    states = await world.rows("SELECT state FROM outbox WHERE kind = 'reply' ORDER BY part")
    assert [row[0] for row in states] == ["sent", "dropped", "dropped"]
