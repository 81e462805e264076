"""The 24 hours after a person's last message: checked before a send, and learned from Twilio."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.domain.errors import GiveUp
from bot.domain.turn import Agent, Turn
from bot.operations import chats
from bot.wiring import Role
from tests.fakes.twilio.book import Message
from tests.fakes.twilio.callbacks import StatusPlan
from tests.fakes.windows import Window
from tests.kit.operating import ANN, act
from tests.kit.whatsapp import CALM, PERSON, echo, endings, parts, three_parts
from tests.world import World

ENDED = "SELECT ending FROM runs"
CARRIES: dict[str, Any] = {
    "twilio_template_sid": "HX" + "1" * 32,
    "twilio_template_variables": {"1": "{reply}"},
}
INVITES: dict[str, Any] = {"twilio_template_sid": "HX" + "2" * 32}


async def with_history(turn: Turn) -> str:
    before = [line.text for line in turn.history]
    return f"you said: {turn.text}, after {before}"


def templates(world: World) -> list[Message]:
    """The templates that were sent, refused or not."""
    return [m for m in world.twilio.book.all.values() if m.content_sid]


def late_window(world: World) -> Agent:
    """An agent during whose work the window closes at Twilio, and not by our reckoning."""

    async def agent(turn: Turn) -> str:
        world.twilio.windows.opened(PERSON, 0.0)
        return f"you said: {turn.text}"

    return agent


async def asked_and_left(world: World) -> None:
    """A message is recorded by a process that answers nothing, and a day and more go by."""
    listener = await world.start(role=Role.WEB, agent=echo)
    await world.twilio.inbound("what about my order?")
    await listener.stop()
    world.advance(25 * 3600)


async def test_b47_a_closed_window_ends_the_run_without_a_send_and_the_next_word_opens_it(
    world: World,
) -> None:
    world.twilio.window = Window.SYNC
    await asked_and_left(world)
    await world.start(agent=with_history, **CALM)
    await world.settled()
    assert await world.rows("SELECT ending, detail FROM runs") == [
        ("undeliverable", "window closed")
    ]
    assert world.twilio.calls_of("create") == []
    await world.twilio.inbound("hello?")
    await world.settled()
    assert world.twilio.texts() == ["you said: hello?, after ['what about my order?']"]
    assert await endings(world) == ["undeliverable", "answered"]


@pytest.mark.parametrize("mode", [Window.SYNC, Window.CALLBACK])
async def test_63016_closes_the_run_in_both_its_ways(world: World, mode: Window) -> None:
    world.twilio.window = mode
    await world.start(agent=late_window(world), **CALM)
    await world.twilio.inbound("hello")
    await world.until(ENDED, lambda rows: rows[0][0] == "undeliverable")
    ((detail,),) = await world.rows("SELECT detail FROM runs")
    assert detail.startswith("window closed")
    world.advance(600)
    await world.settled()
    assert len(world.twilio.calls_of("create")) == 1


@pytest.mark.parametrize("mode", [Window.SYNC, Window.CALLBACK])
async def test_63016_is_followed_by_a_template_where_one_carries_answers(
    world: World, mode: Window
) -> None:
    world.twilio.window = mode
    await world.start(agent=late_window(world), **CARRIES)
    await world.twilio.inbound("hello")
    await world.twilio.wait_for(lambda: templates(world))
    await world.until(ENDED, lambda rows: rows[0][0] == "answered")
    (sent,) = templates(world)
    assert json.loads(sent.content_variables) == {"1": "you said: hello"}
    assert len(world.twilio.calls_of("create")) == 2


async def test_an_answer_to_a_closed_window_leaves_in_a_template(world: World) -> None:
    world.twilio.window = Window.SYNC
    await asked_and_left(world)
    await world.start(agent=with_history, **CALM, **CARRIES, answer_max_age=1e6)
    await world.settled()
    (sent,) = templates(world)
    assert json.loads(sent.content_variables) == {"1": "you said: what about my order?, after []"}
    assert await endings(world) == ["answered"]
    assert len(world.twilio.calls_of("create")) == 1


async def test_a_long_answer_is_one_template(world: World) -> None:
    world.twilio.window = Window.SYNC
    await asked_and_left(world)
    await world.start(agent=three_parts, **CALM, **CARRIES, answer_max_age=1e6)
    await world.settled()
    (sent,) = templates(world)
    assert len(json.loads(sent.content_variables)["1"]) <= 900
    assert [row[1] for row in await parts(world)][1:] == ["dropped", "dropped"]
    assert await endings(world) == ["answered"]


async def test_a_template_that_is_refused_is_not_sent_again(world: World) -> None:
    world.twilio.window = Window.SYNC
    world.twilio.plan = lambda _message: StatusPlan(("failed",), 63042)
    await world.start(agent=late_window(world), **CALM, **CARRIES)
    await world.twilio.inbound("hello")
    await world.until(ENDED, lambda rows: rows[0][0] == "undeliverable")
    world.advance(600)
    await world.settled()
    assert len(templates(world)) == 1


async def test_an_invitation_is_sent_once_and_the_answer_comes_when_the_person_writes(
    world: World,
) -> None:
    world.twilio.window = Window.SYNC
    await asked_and_left(world)
    listener = await world.start(role=Role.WEB, agent=echo)
    await world.twilio.inbound("and the other one?", from_="whatsapp:+15550100016")
    await listener.stop()
    await world.start(agent=with_history, **CALM, **INVITES)
    await world.settled()
    assert [m.to for m in templates(world)] == [PERSON]
    assert await endings(world) == ["undeliverable", "answered"]
    await world.twilio.inbound("hello?")
    await world.settled()
    assert world.twilio.texts(PERSON)[-1] == "you said: hello?, after ['what about my order?']"
    assert len(templates(world)) == 1


@pytest.mark.parametrize(
    ("settings", "ending"), [({}, "failed"), (CARRIES, "apologised")], ids=["none", "template"]
)
async def test_an_apology_too_needs_an_open_window(
    world: World, settings: dict[str, Any], ending: str
) -> None:
    async def gives_up(turn: Turn) -> str:
        world.twilio.windows.opened(PERSON, 0.0)
        raise GiveUp(f"sorry about {turn.text}")

    world.twilio.window = Window.SYNC
    await world.start(agent=gives_up, **settings)
    await world.twilio.inbound("hello")
    await world.settled()
    assert await endings(world) == [ending]
    assert len(templates(world)) == (1 if settings else 0)


async def test_a_note_that_finds_the_window_closed_is_not_sent(world: World) -> None:
    await world.start(agent=echo, **CALM)
    await world.twilio.inbound("hello")
    await world.settled()
    await world.twilio.refuse_connections()
    await world.twilio.inbound("/help")
    await world.until(
        "SELECT attempts, state FROM outbox WHERE kind = 'notice'",
        lambda rows: rows[0][0] >= 1 and rows[0][1] == "pending",  # That call is over.
    )
    world.advance(25 * 3600)
    await world.twilio.accept_connections()
    await world.settled()
    assert (await parts(world, "notice"))[0][1] == "refused"
    assert len(world.twilio.texts()) == 1


@pytest.mark.parametrize("settings", [{}, CARRIES], ids=["none", "template"])
async def test_an_operators_words_need_a_template_outside_the_window(
    world: World, settings: dict[str, Any]
) -> None:
    running = await world.start(agent=echo, **CALM, **settings)
    await world.twilio.inbound("hello")
    await world.settled()
    world.advance(25 * 3600)
    ((chat,),) = await world.rows("SELECT id FROM chats")
    rt = running.process.rt
    await act(running, lambda tx: chats.reply(tx, rt, ANN, chat, "your order is here"))
    await world.settled()
    said = [json.loads(m.content_variables)["1"] for m in templates(world)]
    assert said == (["your order is here"] if settings else [])
    assert len(world.twilio.texts()) == (2 if settings else 1)


async def test_an_operators_words_that_are_too_old_leave_in_no_template_either(
    world: World,
) -> None:
    running = await world.start(agent=echo, **CALM, **CARRIES)
    await world.twilio.inbound("hello")
    await world.settled()
    world.advance(25 * 3600)
    await world.twilio.refuse_connections()
    ((chat,),) = await world.rows("SELECT id FROM chats")
    rt = running.process.rt
    await act(running, lambda tx: chats.reply(tx, rt, ANN, chat, "your order is here"))
    await world.until(
        "SELECT attempts, state FROM outbox WHERE kind = 'operator'",
        lambda rows: rows[0][0] >= 1 and rows[0][1] == "pending",  # That call is over.
    )
    world.advance(25 * 3600)
    await world.twilio.accept_connections()
    await world.settled()
    assert [state for _, state, *_ in await parts(world, "operator")] == ["refused"]
    assert templates(world) == []
