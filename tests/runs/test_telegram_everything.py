"""Nothing that Telegram can deliver raises: each update has exactly one recorded outcome."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from bot.domain.turn import Turn
from tests.fakes.every_update import every_message, every_update
from tests.fakes.recording import Json
from tests.fakes.telegram.spec import Spec, load
from tests.fakes.updates import Person, supergroup, user
from tests.kit.agents import Held, repeats
from tests.world import SECRET, SECRET_HEADER, World

CHAT = 700100221
KEPT = """
    SELECT (SELECT count(*) FROM inbound WHERE payload <> '') + (SELECT count(*) FROM payloads)
"""
OUTCOMES = f"""
    {KEPT} - (
        SELECT count(*) FROM payloads
        WHERE NOT (
            (inbound IS NOT NULL AND ignored IS NULL AND error IS NULL)
            OR (inbound IS NULL AND (ignored IS NULL) <> (error IS NULL))
        )
    )
"""


async def silent(turn: Turn) -> None:
    """Chooses to say nothing."""


@pytest.mark.parametrize("generate", [every_update, every_message])
async def test_every_update_of_the_bot_api_has_one_outcome(
    world: World, generate: Callable[[Spec], Iterator[tuple[str, Json]]]
) -> None:
    spec = load()
    if spec is None:
        pytest.skip("the description of the Bot API is not beside the project")
    process = await world.start(agent=silent, chat_messages_per_minute=1000, chat_waiting_max=1000)
    count = 0
    for name, update in generate(spec):
        response = await process.post_update(update)
        assert response.status_code == 200, name
        count += 1
        assert await world.rows(KEPT) == [(count,)], name
        assert await world.rows(OUTCOMES) == [(count,)], name
    assert count > 20
    await world.settled()
    lost = "SELECT count(*) FROM inbound WHERE (run IS NULL) = (ignored IS NULL)"
    assert await world.rows(lost) == [(0,)]


@pytest.mark.parametrize("update", [{}, {"update_id": 1}, {"update_id": 2, "message": {}}, []])
async def test_what_is_no_update_is_kept_and_acknowledged(world: World, update: object) -> None:
    process = await world.start(agent=silent)
    response = await process.post_update(update)  # type: ignore[arg-type]
    assert response.status_code == 200
    assert await world.rows(OUTCOMES) == [(1,)]


async def test_b57_each_thing_without_words_gets_one_answer(world: World) -> None:
    process = await world.start(burst="each", agent=None)
    ada = Person(CHAT, first_message=80)
    things = [ada.voice("f1"), ada.sticker(), ada.contact(), ada.poll(), ada.location(), ada.dice()]
    for update in things:
        assert (await process.post_update(update)).status_code == 200
    await world.settled()
    texts = world.telegram.texts(CHAT)
    assert len(texts) == len(things)
    assert texts[0] == "I got: [voice message, 4 s]"
    assert all(text.startswith("I got: ") for text in texts)
    assert await world.rows("SELECT count(*) FROM runs WHERE ending = 'answered'") == [(6,)]


async def test_b40_invisible_words_get_one_answer_and_poison_nothing(world: World) -> None:
    agent = Held()
    agent.go.set()
    process = await world.start(agent=agent)
    ada = Person(700100219)
    for text in ("\u200b\u200d\ufeff", "hello"):
        assert (await process.post_update(ada.text(text))).status_code == 200
        await world.settled()
    assert agent.texts == ["[empty message]", "hello"]
    assert [said.text for said in agent.turns[1].history] == ["[empty message]"] * 2
    assert len(world.telegram.texts(700100219)) == 2


async def test_b42_a_very_long_name_never_costs_the_message(world: World) -> None:
    name = "\U0001f468\u200d\U0001f469" * 64
    agent = Held()
    agent.go.set()
    process = await world.start(agent=agent)
    ada = Person(CHAT, sender=user(CHAT, name, last_name="x" * 64))
    await process.post_update(ada.text("hello"))
    title = "G" * 255
    in_group = Person(CHAT, supergroup(-1007000000301, title), sender=ada.sender)
    await process.post_update(in_group.text("nothing for the bot"))
    await world.twilio.inbound("hello", fields={"ProfileName": "P" * 500})
    await world.settled()
    assert world.telegram.texts(CHAT) == ["hello"]
    assert world.twilio.texts() == ["hello"]
    assert {t.messages[0].sender_name for t in agent.turns} == {f"{name} {'x' * 64}", "P" * 500}
    names = await world.rows("SELECT name FROM chats ORDER BY id")
    assert [row[0] for row in names][1:] == [title, "P" * 500]


async def test_b37_a_nul_in_a_message_is_replaced_and_the_message_is_answered(
    world: World,
) -> None:
    process = await world.start(agent=repeats)
    escaped = json.dumps(Person(CHAT).text("hi\x00there \ud800."))
    await process.client.post(
        f"{process.url}/telegram/webhook", content=escaped, headers={SECRET_HEADER: SECRET}
    )
    await world.twilio.inbound("hi\x00there", fields={"ProfileName": "Bo\x00b"})
    await world.settled()
    assert world.telegram.texts(CHAT) == ["hi\ufffdthere \ufffd."]
    assert world.twilio.texts() == ["hi\ufffdthere"]


async def test_a_library_that_insists_on_a_field_never_costs_a_message(world: World) -> None:
    process = await world.start(agent=repeats)
    update = Person(CHAT).text("hello")
    for name in ("date", "from"):
        update["message"].pop(name)
    assert (await process.post_update(update)).status_code == 200
    await world.settled()
    assert world.telegram.texts(CHAT) == ["hello"]


async def test_what_cannot_be_recorded_is_kept_and_acknowledged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of our own must not make a platform deliver one update for ever."""
    process = await world.start(agent=repeats)

    def broken(*_: object) -> None:
        raise LookupError("swordfish")

    with monkeypatch.context() as patched:
        for place in ("record", "together"):
            patched.setattr(f"bot.intake.{place}.admit", broken)
        response = await process.post_update(Person(700100295).text("hello"))
    assert response.status_code == 200
    letters = await world.rows("SELECT error FROM payloads WHERE error IS NOT NULL")
    assert [row[0] for row in letters] == ["could not be recorded: LookupError"]
    assert await world.rows("SELECT count(*) FROM inbound") == [(0,)]
    await process.post_update(Person(700100296).text("hello"))
    await world.settled()
    assert world.telegram.texts(700100296) == ["hello"]
