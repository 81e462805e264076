"""A private bot asks the same list at every door."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from bot.domain.decisions.admission import invited
from bot.domain.turn import Turn
from bot.intake.backfill import YOUNG
from bot.texts import Text, Words
from tests.fakes.updates import Person, bot_user, entity, supergroup, user
from tests.kit.agents import Echo
from tests.world import Running, World

STRANGER, FRIEND = 700100291, 700100292
GROUP = -1007000000930
REFUSED = Words.load().say(Text.NOT_ALLOWED)
OURS = bot_user(7_000_000_001, "relay_test_bot")
NUMBER = "whatsapp:+15550100291"


async def on_telegram(process: Running, *updates: dict[str, object]) -> None:
    for update in updates:
        assert (await process.post_update(update)).status_code == 200


async def a_message(world: World, process: Running) -> None:
    await on_telegram(process, Person(STRANGER).text("hello"))


async def an_edit(world: World, process: Running) -> None:
    stranger = Person(STRANGER)
    first = stranger.text("hello")
    await on_telegram(process, first, stranger.edit(first, "hello?"))


async def a_command(world: World, process: Running) -> None:
    stranger = Person(STRANGER)
    await on_telegram(process, *(stranger.command(c) for c in ("/start", "/help", "/retry")))


async def a_link(world: World, process: Running) -> None:
    await on_telegram(process, Person(STRANGER).command("/start ref_42"))


async def a_button(world: World, process: Running) -> None:
    stranger = Person(STRANGER)
    under = stranger.content(text="choose") | {"from": OURS}
    pressed = {"id": "77", "from": stranger.sender, "message": under, "data": "yes"}
    await on_telegram(process, stranger.update("callback_query", pressed))


async def a_poll_and_a_reaction(world: World, process: Running) -> None:
    stranger = Person(STRANGER)
    answer = {"poll_id": "1", "user": stranger.sender, "option_ids": [0]}
    reaction = {"chat": stranger.chat, "message_id": 1, "user": stranger.sender, "date": 1}
    await on_telegram(
        process,
        stranger.update("poll_answer", answer),
        stranger.update("message_reaction", reaction),
    )


async def a_group(world: World, process: Running) -> None:
    text = "@relay_test_bot hello"
    stranger = Person(STRANGER, supergroup(GROUP))
    await on_telegram(process, stranger.text(text, entity("mention", text, "@relay_test_bot")))


async def a_piece_in_a_group(world: World, process: Running) -> None:
    stranger = Person(STRANGER, supergroup(GROUP))
    text = "@relay_test_bot " + "x" * 4000
    mention = entity("mention", text, "@relay_test_bot")
    await on_telegram(process, stranger.text(text, mention), stranger.text("tail"))


async def an_album(world: World, process: Running) -> None:
    await on_telegram(process, *Person(STRANGER).album("mg-1", "look"))


async def being_added(world: World, process: Running) -> None:
    stranger = Person(STRANGER, supergroup(GROUP))
    change = {
        "chat": stranger.chat,
        "from": stranger.sender,
        "date": 1,
        "new_chat_member": {"user": OURS, "status": "member"},
    }
    await on_telegram(process, stranger.update("my_chat_member", change))


async def whatsapp(world: World, process: Running) -> None:
    for text in ("hello", "help", "start", "try again"):
        await world.twilio.inbound(text, from_=NUMBER)


async def a_status(world: World, process: Running) -> None:
    form = [("MessageSid", "SM" + "a" * 32), ("MessageStatus", "failed"), ("To", NUMBER)]
    await world.twilio.repeat(form)


async def the_platforms_list(world: World, process: Running) -> None:
    mark = "SELECT catchup_mark FROM accounts WHERE channel = 'whatsapp'"
    await world.until(mark, lambda rows: rows[0][0] is not None)
    await process.stop()
    world.advance(60)
    await world.twilio.inbound("hello", from_=NUMBER, webhook=False)
    world.advance(YOUNG)
    await world.start(agent=process.process.ctx.agent, allowed=str(FRIEND))
    await world.until("SELECT count(*) FROM inbound", lambda rows: rows[0][0] == 1)


Door = Callable[[World, Running], Awaitable[None]]
DOORS: list[Door] = [
    a_message, an_edit, a_command, a_link, a_button, a_poll_and_a_reaction, a_group,
    a_piece_in_a_group, an_album, being_added, whatsapp, a_status, the_platforms_list,
]  # fmt: skip


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
async def test_every_door_is_closed_to_who_is_not_on_the_list(world: World, door: Door) -> None:
    agent = Echo()
    process = await world.start(agent=agent, allowed=str(FRIEND))
    await door(world, process)
    world.advance(10)
    await world.settled()
    assert not agent.calls
    assert await world.rows("SELECT count(*) FROM runs") == [(0,)]
    said = [
        *world.telegram.texts(STRANGER),
        *world.telegram.texts(GROUP),
        *world.twilio.texts(NUMBER),
    ]
    assert said in ([], [REFUSED])


async def reminds(turn: Turn) -> str:
    """Sets a reminder for the next hour, and tells what is due."""
    if turn.messages[0].kind == "reminder":
        return f"remember: {turn.text}"
    await turn.reminders.add("in 1 hour", "the pills", key="pills")
    return "set"


@pytest.mark.parametrize(
    ("allowed_then", "due"),
    [
        ("1", ["set"]),
        ("@ada_l", ["set", "remember: the pills"]),
        ("", ["set", "remember: the pills"]),
    ],
)
async def test_who_is_on_the_list_no_more_is_not_reminded(
    world: World, allowed_then: str, due: list[str]
) -> None:
    process = await world.start(agent=reminds, allowed="@Ada_L")
    ada = Person(FRIEND, sender=user(FRIEND, username="ada_L"))
    await on_telegram(process, ada.text("remind me"))
    await world.settled()
    await process.die()
    world.advance(3601)
    process = await world.start(agent=reminds, allowed=allowed_then)
    await world.until("SELECT state FROM reminders", lambda rows: rows[0][0] == "done")
    await world.settled()
    assert world.telegram.texts(FRIEND) == due


async def test_an_edit_by_who_is_on_the_list_no_more_changes_nothing(world: World) -> None:
    process = await world.start(agent=Echo(), allowed=str(STRANGER), quiet_ms=60_000)
    stranger = Person(STRANGER)
    first = stranger.text("hello")
    await on_telegram(process, first)
    await process.die()
    agent = Echo()
    process = await world.start(agent=agent, allowed=str(FRIEND), quiet_ms=60_000)
    await on_telegram(process, stranger.edit(first, "obey"))
    world.advance(61)
    await world.settled()
    assert list(agent.calls) == ["hello"]


@pytest.mark.parametrize(
    ("names", "allowed", "in_"),
    [
        ({"7"}, set(), True),
        ({"7"}, {"7"}, True),
        ({"7"}, {"8"}, False),
        ({"@Ada"}, {"@ada"}, True),
        ({"whatsapp:+1555"}, {"+1555"}, True),
        ({"whatsapp:+1555"}, {"whatsapp:+1555"}, True),
        (set(), {"7"}, False),
    ],
)
def test_who_is_on_the_list(names: set[str], allowed: set[str], *, in_: bool) -> None:
    assert invited(names, frozenset(allowed)) is in_


async def test_who_is_on_the_list_by_a_number_is_known_by_their_other_name_too(
    world: World,
) -> None:
    agent = Echo()
    await world.start(agent=agent, allowed=NUMBER.removeprefix("whatsapp:"))
    scoped = "whatsapp:US.1234567890"
    await world.twilio.inbound("hello", from_=NUMBER, user_id=scoped)
    await world.settled()
    await world.twilio.inbound("hello again", from_=scoped, user_id=scoped)
    await world.settled()
    assert list(agent.calls) == ["hello", "hello again"]
