"""Sends whose answer never came: found in the list, told by a callback, or sent once more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from bot.leases.checkpoints import Checkpoint
from tests.fakes.faults import Misbehaviour
from tests.fakes.twilio import faults
from tests.fakes.twilio.callbacks import StatusPlan
from tests.kit.whatsapp import CALM, PERSON, echo, endings, parts, three_parts
from tests.world import Running, World, dies_at

STORING: list[Callable[[], Misbehaviour]] = [
    faults.hang_after_storing,
    faults.drop_after_storing,
    faults.server_error,
    faults.bad_gateway,
    faults.empty_body,
    faults.not_json,
    faults.cut_answer,
]
UNCERTAIN = "SELECT state, looks FROM outbox WHERE kind = 'reply'"
MARK = "SELECT catchup_mark FROM accounts WHERE channel = 'whatsapp'"
SILENT = StatusPlan((), told=False)


async def looked(world: World, times: int) -> None:
    """Let the list be asked `times` times in vain."""
    for look, seconds in enumerate((3, 8, 20, 30, 60)[:times], start=1):
        world.advance(seconds)
        await world.until(UNCERTAIN, partial(_seen, look))


def _seen(look: int, rows: Sequence[Any]) -> bool:
    return bool(rows[0].looks >= look or rows[0].state != "uncertain")


@pytest.mark.parametrize("fault", STORING, ids=lambda make: make.__name__)
async def test_b15_what_was_stored_without_an_answer_is_found_in_the_list(
    world: World, fault: Callable[[], Misbehaviour]
) -> None:
    world.twilio.plan = lambda _message: SILENT
    world.twilio.fail("create", fault())
    await world.start(agent=echo, **CALM)
    await world.twilio.inbound("hello")
    await world.until(UNCERTAIN, lambda rows: bool(rows) and rows[0].state == "uncertain")
    world.advance(3)
    await world.settled()
    assert world.twilio.texts() == ["you said: hello"]
    assert len(world.twilio.calls_of("create")) == 1
    assert await endings(world) == ["answered"]
    (message,) = world.twilio.messages()
    assert await world.rows("SELECT receipt FROM outbox WHERE kind = 'reply'") == [(message.sid,)]


async def test_a_callback_names_the_message_before_any_look(world: World) -> None:
    world.twilio.plan = lambda _message: StatusPlan.nothing()
    world.twilio.fail("create", faults.drop_after_storing())
    await world.start(agent=echo, **CALM)
    await world.twilio.inbound("hello")
    await world.until(UNCERTAIN, lambda rows: bool(rows) and rows[0].state == "uncertain")
    (message,) = world.twilio.messages()
    await world.twilio.report(message.sid, "sent")
    await world.settled()
    assert len(world.twilio.calls_of("create")) == 1
    assert await endings(world) == ["answered"]
    assert world.twilio.calls_of("list") == [] or await parts(world) == [(1, "sent", 1, "")]


async def test_a_list_that_lags_is_asked_again(world: World) -> None:
    world.twilio.plan = lambda _message: SILENT
    world.twilio.fail("create", faults.drop_after_storing())
    await world.start(agent=echo, **CALM)
    await world.until(MARK, lambda rows: rows[0][0] is not None)
    world.twilio.hide_from_list()
    await world.twilio.inbound("hello")
    await world.until(UNCERTAIN, lambda rows: bool(rows) and rows[0].state == "uncertain")
    await looked(world, 3)
    world.twilio.reveal_list()
    world.advance(30)
    await world.settled()
    assert world.twilio.texts() == ["you said: hello"]
    assert len(world.twilio.calls_of("create")) == 1
    assert await endings(world) == ["answered"]


async def test_what_no_look_found_is_sent_once_more_and_never_a_third_time(world: World) -> None:
    world.twilio.plan = lambda _message: SILENT
    world.twilio.fail("create", faults.hang_before_storing(), times=2)
    await world.start(agent=echo, **CALM)
    await world.twilio.inbound("hello")
    await world.until(UNCERTAIN, lambda rows: bool(rows) and rows[0].state == "uncertain")
    await looked(world, 5)
    await world.twilio.wait_for(lambda: len(world.twilio.calls_of("create")) == 2)
    first, second = world.twilio.calls_of("create")
    assert "a=1" in first.params["StatusCallback"]
    assert "a=2" in second.params["StatusCallback"]
    assert (
        first.params["StatusCallback"].split("&")[0]
        == second.params["StatusCallback"].split("&")[0]
    )
    await world.until(UNCERTAIN, lambda rows: rows[0].state == "uncertain")
    await looked(world, 5)
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("uncertain",)])
    assert (
        len([c for c in world.twilio.calls_of("create") if c.params["Body"].startswith("you said")])
        == 2
    )
    notices = await parts(world, "notice")
    assert len(notices) == 1


async def test_two_messages_for_one_part_are_recorded_and_alarmed(world: World) -> None:
    world.twilio.plan = lambda _message: SILENT
    world.twilio.fail("create", faults.drop_after_storing())
    running = await world.start(agent=echo, **CALM)
    await world.until(MARK, lambda rows: rows[0][0] is not None)
    world.twilio.hide_from_list()
    await world.twilio.inbound("hello")
    await world.until(UNCERTAIN, lambda rows: bool(rows) and rows[0].state == "uncertain")
    await looked(world, 5)
    await world.settled()
    first, second = world.twilio.messages()
    for status in ("sent", "delivered", "read"):
        await world.twilio.report(first.sid, status)
    receipts = await world.rows("SELECT receipt FROM receipts ORDER BY attempt")
    assert receipts == [(first.sid,), (second.sid,)] or set(receipts) == {
        (first.sid,),
        (second.sid,),
    }
    doubles = "SELECT count(*) FROM events WHERE what = 'two receipts for one part'"
    assert await world.rows(doubles) == [(1,)]
    assert running.process.rt.observer.double_receipts._value.get() == 1
    world.advance(300)
    await world.settled()
    assert len(world.twilio.messages()) == 2


async def test_b17_proof_that_nothing_left_is_tried_again_with_a_growing_delay(
    world: World,
) -> None:
    await world.start(agent=echo, **CALM)
    await world.until(MARK, lambda rows: rows[0][0] is not None)
    world.stop_time()
    await world.twilio.refuse_connections()
    await world.twilio.inbound("hello")
    sql = "SELECT state, attempts, not_before FROM outbox"
    waits = []
    for attempt in (1, 2, 3):
        (row,) = await world.until(sql, partial(_failed, attempt))
        waits.append(row.not_before - world.clock.wall())
        if attempt == 3:
            await world.twilio.accept_connections()
        world.advance(max(0.0, waits[-1]) + 0.1)
    await world.settled()
    assert waits[0] < waits[1] < waits[2]
    assert world.twilio.texts() == ["you said: hello"]
    assert (await parts(world))[0][2] == 4
    assert await endings(world) == ["answered"]


def _failed(attempt: int, rows: Sequence[Any]) -> bool:
    return bool(rows) and rows[0].state == "pending" and rows[0].attempts == attempt


async def test_b19_a_death_after_the_answer_finds_the_message_in_the_list(world: World) -> None:
    world.twilio.plan = lambda _message: StatusPlan(("sent",), told=False)
    victim: list[Running] = []
    reached = dies_at(Checkpoint.AFTER_SEND, lambda: victim[0])
    victim.append(await world.start(agent=three_parts, reached=reached, **CALM))
    await world.twilio.inbound("hello")
    await world.twilio.wait_for(world.twilio.messages)
    await victim[0].die()
    await world.start(agent=three_parts, **CALM)
    await world.until(
        "SELECT state FROM outbox WHERE part = 1", lambda rows: rows[0][0] in ("uncertain", "sent")
    )
    world.advance(3)
    await world.settled()
    assert [text[0] for text in world.twilio.texts()] == ["1", "2", "3"]
    assert await endings(world) == ["answered"]


async def test_later_parts_wait_for_the_uncertain_one_and_leave_in_order(world: World) -> None:
    world.twilio.fail("create", faults.server_error(), nth=2)
    world.twilio.plan = lambda message: SILENT if message.body.startswith("2") else StatusPlan()
    await world.start(agent=three_parts, **CALM)
    await world.twilio.inbound("hello")
    await world.until(
        "SELECT state FROM outbox WHERE part = 2",
        lambda rows: bool(rows) and rows[0][0] == "uncertain",
    )
    assert [text[0] for text in world.twilio.texts()] == ["1", "2"]
    world.advance(3)
    await world.until("SELECT state FROM outbox WHERE part = 2", lambda rows: rows[0][0] == "sent")
    world.advance(30)
    await world.settled()
    assert [text[0] for text in world.twilio.texts()] == ["1", "2", "3"]


async def test_equal_words_in_one_chat_are_each_found_once(world: World) -> None:
    world.twilio.plan = lambda _message: SILENT
    world.twilio.fail("create", faults.drop_after_storing(), times=2)
    await world.start(agent=lambda _turn: _same(), **CALM)
    for number in (1, 2):
        await world.twilio.inbound(f"hello {number}")
        await world.until(
            "SELECT count(*) FROM outbox WHERE state = 'uncertain'", lambda rows: rows[0][0] == 1
        )
        world.advance(3)
        await world.settled()
    assert world.twilio.texts() == ["the same"] * 2
    receipts = {
        row[0] for row in await world.rows("SELECT receipt FROM outbox WHERE kind = 'reply'")
    }
    assert receipts == {message.sid for message in world.twilio.messages(PERSON)}


async def _same() -> str:
    return "the same"


async def test_a_list_that_can_not_be_asked_does_not_hold_the_chat_for_ever(world: World) -> None:
    world.twilio.plan = lambda _message: SILENT
    world.twilio.fail("create", faults.drop_after_storing())
    world.twilio.fail("list", faults.bad_gateway(), times=None)
    await world.start(agent=echo, **CALM)
    await world.twilio.inbound("hello")
    await world.until(UNCERTAIN, lambda rows: bool(rows) and rows[0].state == "uncertain")
    world.advance(901)
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("uncertain",)])
    await world.settled()
    assert (
        len([c for c in world.twilio.calls_of("create") if c.params["Body"].startswith("you")]) == 1
    )


async def test_a_death_between_two_looks_changes_nothing(world: World) -> None:
    world.twilio.plan = lambda _message: SILENT
    world.twilio.fail("create", faults.drop_after_storing())
    first = await world.start(agent=echo, **CALM)
    await world.until(MARK, lambda rows: rows[0][0] is not None)
    world.twilio.hide_from_list()
    await world.twilio.inbound("hello")
    await world.until(UNCERTAIN, lambda rows: bool(rows) and rows[0].state == "uncertain")
    await looked(world, 2)
    await first.die()
    await world.start(agent=echo, **CALM)
    world.twilio.reveal_list()
    world.advance(20)
    await world.settled()
    assert world.twilio.texts() == ["you said: hello"]
    assert len(world.twilio.calls_of("create")) == 1
    assert await endings(world) == ["answered"]


async def test_a_notice_without_an_answer_is_found_under_the_address_it_went_to(
    world: World,
) -> None:
    user = "whatsapp:US.4566546130240823"
    world.twilio.plan = lambda _message: SILENT
    world.twilio.fail("create", faults.drop_after_storing())
    await world.start(agent=echo, **CALM)
    await world.twilio.inbound("/help", user_id=user)
    await world.until(
        "SELECT state FROM outbox WHERE kind = 'notice'", lambda rows: rows == [("uncertain",)]
    )
    await world.twilio.inbound("hello", from_=user, user_id=user)
    world.advance(3)
    await world.until(
        "SELECT state FROM outbox WHERE kind = 'notice'", lambda rows: rows == [("sent",)]
    )
    assert len(world.twilio.messages(PERSON)) == 1
