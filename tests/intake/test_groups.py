"""Groups: answered when asked, otherwise only listened to."""

from __future__ import annotations

import pytest

from bot.domain.turn import Turn
from tests.fakes.updates import (
    ANONYMOUS_ADMIN,
    Person,
    anonymous_admin,
    bot_user,
    channel,
    entity,
    forum,
    group,
    supergroup,
    user,
)
from tests.kit.agents import Held, repeats
from tests.world import World

GROUP = -1007000000501
OURS = bot_user(7_000_000_001, "relay_test_bot")
IGNORED = "SELECT ignored FROM inbound WHERE run IS NULL ORDER BY id"


def mention(person: Person, text: str) -> dict[str, object]:
    return person.text(text, entity("mention", text, "@relay_test_bot"))


async def test_a_group_is_answered_when_it_mentions_or_replies_and_otherwise_heard(
    world: World,
) -> None:
    agent = Held()
    agent.go.set()
    process = await world.start(agent=agent)
    ada = Person(700100251, supergroup(GROUP))
    bob = Person(700100252, supergroup(GROUP), sender=user(700100252, "Bob"))
    await process.post_update(ada.text("what do you all think?"))
    await process.post_update(mention(ada, "@relay_test_bot what do you think?"))
    await world.settled()
    [shown] = world.telegram.messages(GROUP)
    answer = {"message_id": shown.message_id, "from": OURS, "chat": ada.chat, "date": 1}
    await process.post_update(bob.reply("and why?", answer | {"text": shown.text}))
    await world.settled()
    assert [[m.sender_name for m in turn.messages] for turn in agent.turns] == [["Ada"], ["Bob"]]
    assert [said.sender_name for said in agent.turns[1].history] == ["Ada", ""]
    assert shown.reply_to is not None
    assert [row[0] for row in await world.rows(IGNORED)] == ["not_addressed"]
    assert (await world.rows("SELECT count(*) FROM chats")) == [(1,)]


async def test_a_group_speaks_the_language_of_who_spoke_to_us(world: World) -> None:
    process = await world.start(agent=repeats)
    ada = Person(1, supergroup(GROUP), sender=user(700100251, language_code="de"))
    bob = Person(2, supergroup(GROUP), sender=user(700100252, "Bob", language_code="fr"))
    await process.post_update(mention(ada, "@relay_test_bot hallo"))
    await process.post_update(bob.text("salut tout le monde"))
    assert await world.rows("SELECT language FROM chats") == [("de",)]
    await process.post_update(mention(bob, "@relay_test_bot salut"))
    assert await world.rows("SELECT language FROM chats") == [("fr",)]


async def test_several_speakers_of_one_burst_keep_their_names(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    ada = Person(700100251, supergroup(GROUP))
    bob = Person(700100252, supergroup(GROUP), sender=user(700100252, "Bob"))
    await process.post_update(mention(ada, "@relay_test_bot one"))
    await agent.begun.wait()
    await process.post_update(mention(ada, "@relay_test_bot two"))
    await process.post_update(mention(bob, "@relay_test_bot three"))
    agent.go.set()
    await world.settled()
    assert [m.sender_name for m in agent.turns[1].messages] == ["Ada", "Bob"]


async def test_b93_other_bots_are_recorded_and_never_answered(world: World) -> None:
    process = await world.start(agent=repeats)
    ada = Person(700100251, supergroup(-1007000000601))
    await process.post_update(mention(ada, "@relay_test_bot hello"))
    await world.settled()
    other = Person(7000000055, supergroup(-1007000000601), sender=bot_user(7000000055, "other_bot"))
    shown = world.telegram.messages(-1007000000601)[0]
    answer = {"message_id": shown.message_id, "from": OURS, "chat": ada.chat, "date": 1}
    for number in range(10):
        update = other.reply(f"no, you {number}", answer | {"text": shown.text})
        assert (await process.post_update(update)).status_code == 200
    await world.settled()
    assert len(world.telegram.messages(-1007000000601)) == 1
    assert [row[0] for row in await world.rows(IGNORED)] == ["bot"] * 10
    assert await world.rows("SELECT count(*) FROM runs") == [(1,)]


async def test_b105_a_channel_post_is_ignored_and_an_anonymous_admin_is_one_sender(
    world: World,
) -> None:
    agent = Held()
    agent.go.set()
    process = await world.start(agent=agent)
    news = channel(-1007000000701, "T")
    assert (await process.post_update(Person(1, news).post("news"))).status_code == 200
    chat = supergroup(-1007000000702)
    admin = anonymous_admin(chat)
    text = "@relay_test_bot who am I?"
    marks = entity("mention", text, "@relay_test_bot")
    await process.post_update(admin.text(text, marks, sender_chat=chat))
    await world.settled()
    [turn] = agent.turns
    assert (turn.messages[0].sender_id, turn.messages[0].sender_name) == (
        "-1007000000702",
        "Friends",
    )
    assert turn.messages[0].sender_id != str(ANONYMOUS_ADMIN["id"])
    ignored = await world.rows("SELECT ignored FROM payloads WHERE ignored IS NOT NULL")
    assert [row[0] for row in ignored] == ["channel posts are not answered"]
    assert world.telegram.texts(-1007000000701) == []


async def test_channel_posts_are_answered_where_that_is_wanted(world: World) -> None:
    process = await world.start(agent=repeats, telegram_channel_posts=True)
    await process.post_update(Person(1, channel(-1007000000701)).post("news"))
    await world.settled()
    assert world.telegram.texts(-1007000000701) == ["news"]


async def test_b53_topics_are_chats_of_their_own_and_every_part_stays_in_its_topic(
    world: World,
) -> None:
    held = Held()

    async def agent(turn: Turn) -> str:
        if turn.chat.topic == "77":
            await held(turn)
            return "seventy-seven " * 400
        return f"{len(turn.history)} before"

    process = await world.start(agent=agent)
    chat = forum(-1007000000401)
    first = Person(700100251, chat, topic=77)
    second = Person(700100252, chat, topic=78)
    await process.post_update(mention(first, "@relay_test_bot long"))
    await held.begun.wait()
    await process.post_update(mention(second, "@relay_test_bot short"))
    await world.telegram.wait_for(lambda: world.telegram.texts(-1007000000401, 78))
    assert world.telegram.texts(-1007000000401, 77) == []
    held.go.set()
    await world.settled()
    assert world.telegram.texts(-1007000000401, 78) == ["0 before"]
    assert len(world.telegram.texts(-1007000000401, 77)) == 2
    assert len(world.telegram.texts(-1007000000401)) == 3
    assert await world.rows("SELECT topic FROM chats ORDER BY topic") == [("77",), ("78",)]


async def test_being_removed_and_let_in_again_concerns_every_topic(world: World) -> None:
    process = await world.start(agent=repeats)
    chat = forum(-1007000000402)
    for topic in (77, 78):
        person = Person(700100251 + topic, chat, topic=topic)
        await process.post_update(mention(person, "@relay_test_bot hi"))
    await world.settled()
    admin = Person(700100253, chat)
    await process.post_update(admin.member("kicked"))
    parked = "SELECT count(*) FROM chats WHERE unreachable_reason IS NOT NULL"
    assert await world.rows(parked) == [(2,)]
    await process.post_update(admin.member("member", "kicked"))
    assert await world.rows(parked) == [(0,)]


@pytest.mark.parametrize("kind", [group, supergroup])
async def test_b51_big_ids_are_kept_to_the_last_digit(world: World, kind: object) -> None:
    number = -1001234567890123 if kind is supergroup else -5000000123
    process = await world.start(agent=repeats)
    chat = supergroup(number) if kind is supergroup else group(number)
    ada = Person(4503599627370495, chat, first_message=41)
    await process.post_update(mention(ada, "@relay_test_bot hi"))
    await world.settled()
    assert world.telegram.texts(number) == ["@relay_test_bot hi"]
    assert await world.rows("SELECT address FROM chats") == [(str(number),)]
    assert await world.rows("SELECT sender_id FROM inbound") == [("4503599627370495",)]
