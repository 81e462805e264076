"""A message as it reaches the agent: quotes, forwards, files; and odd answers of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.domain.errors import GiveUp
from bot.domain.reply import Reply
from bot.domain.turn import Turn
from bot.texts import Text, Words
from tests.fakes.updates import Person, bot_user, user
from tests.kit.agents import Held, repeats
from tests.world import World

CHAT = 700100223
WORDS = Words.load()


async def test_replies_quotes_and_forwards_reach_the_agent(world: World) -> None:
    agent = Held()
    agent.go.set()
    process = await world.start(agent=agent)
    ada = Person(CHAT)
    await process.post_update(ada.text("hello"))
    await world.settled()
    [shown] = world.telegram.messages(CHAT)
    ours = bot_user(7_000_000_001, "relay_test_bot")
    answer = {"message_id": shown.message_id, "from": ours, "chat": ada.chat, "date": 1}
    await process.post_update(ada.reply("what is that?", answer | {"text": "hello"}, "hell"))
    await world.settled()
    quoted = agent.turns[1].messages[0].quoted
    assert quoted is not None
    assert (quoted.text, quoted.from_us) == ("hell", True)
    origin = {"type": "user", "sender_user": user(5, "Grace"), "date": 1}
    await process.post_update(ada.forward("buy now", origin))
    await world.settled()
    forwarded = agent.turns[2].messages[0]
    assert (forwarded.text, forwarded.forwarded_from) == ("buy now", "Grace")


async def test_a_file_is_read_through_the_turn(world: World) -> None:
    file_id = world.telegram.main.add_file(b"%PDF", "doc-1")

    async def agent(turn: Turn) -> str:
        [attachment] = turn.messages[0].attachments
        return (await attachment.read()).decode()

    process = await world.start(agent=agent)
    await process.post_update(Person(CHAT).document(file_id))
    await world.settled()
    assert world.telegram.texts(CHAT) == ["%PDF"]


@pytest.mark.parametrize("answer", ["", " \n", "\u200b", Reply("")])
async def test_b78_an_empty_answer_becomes_one_fixed_sentence(
    world: World, answer: str | Reply
) -> None:
    calls = 0

    async def agent(turn: Turn) -> str | Reply:
        nonlocal calls
        calls += 1
        await turn.step("tool", lambda: "done")
        return answer

    process = await world.start(agent=agent)
    await process.post_update(Person(CHAT).text("hello"))
    await world.settled()
    assert world.telegram.texts(CHAT) == [WORDS.say(Text.EMPTY_ANSWER)]
    assert calls == 1
    assert await world.rows("SELECT ending FROM runs") == [("answered",)]


async def test_an_operators_own_words_are_what_people_read(world: World, tmp_path: Path) -> None:
    texts = tmp_path / "texts.toml"
    texts.write_text('[de]\nNOTHING_TO_STOP = "Da ist nix."\n[en]\nSTATUS_IDLE = "All quiet."\n')
    process = await world.start(agent=repeats, texts_file=texts)
    english = Person(CHAT)
    german = Person(CHAT + 1, sender=user(CHAT + 1, language_code="de"))
    await process.post_update(english.command("/status"))
    await process.post_update(german.command("/stop"))
    await process.post_update(german.command("/status"))
    await world.settled()
    assert world.telegram.texts(CHAT) == ["All quiet."]
    assert world.telegram.texts(CHAT + 1) == ["Da ist nix.", WORDS.say(Text.STATUS_IDLE, "de")]


async def test_whatsapp_speaks_the_operators_language_since_it_tells_no_persons(
    world: World,
) -> None:
    await world.start(agent=repeats, language="es")
    await world.twilio.inbound("START")
    await world.settled()
    assert world.twilio.texts() == [WORDS.say(Text.WELCOME, "es")]


async def test_a_very_long_answer_is_a_file_with_words_in_the_persons_language(
    world: World,
) -> None:
    async def agent(turn: Turn) -> str:
        return "\n".join(f"line {n} " + "x" * 70 for n in range(1000))

    process = await world.start(agent=agent, max_parts=3)
    ada = Person(CHAT, sender=user(CHAT, language_code="fr"))
    await process.post_update(ada.text("everything, please"))
    await world.settled()
    [shown] = world.telegram.messages(CHAT)
    assert shown.kind == "document"
    assert shown.text.startswith(WORDS.say(Text.LONG_REPLY_FILE, "fr") + "\n\nline 0 ")


@pytest.mark.parametrize("answer", ["a\x00b", "a\ud83db", Reply("a\udc00b")])
async def test_an_answer_that_no_database_takes_is_cleaned_and_sent(
    world: World, answer: str | Reply
) -> None:
    calls = 0

    async def agent(turn: Turn) -> str | Reply:
        nonlocal calls
        calls += 1
        return answer

    process = await world.start(agent=agent)
    await process.post_update(Person(CHAT).text("hello"))
    await world.settled()
    assert world.telegram.texts(CHAT) == ["a\ufffdb"]
    assert calls == 1
    assert await world.rows("SELECT coalesce(reply, text) FROM outbox WHERE kind = 'reply'") == [
        ("a\ufffdb",)
    ]


@pytest.mark.parametrize("error", [GiveUp("a\ud83db", "no\x00"), GiveUp("a\x00b", "\udc00")])
async def test_last_words_that_no_database_takes_are_cleaned_too(
    world: World, error: GiveUp
) -> None:
    async def agent(turn: Turn) -> str:
        raise error

    process = await world.start(agent=agent)
    await process.post_update(Person(CHAT).text("hello"))
    await world.settled()
    assert world.telegram.texts(CHAT) == ["a\ufffdb"]
