"""Parts that may or may not have arrived: asked about where that helps, told about, resent."""

from __future__ import annotations

import pytest

from bot.domain.turn import Turn
from bot.texts import Text, Words
from tests.fakes.faults import Fault
from tests.fakes.telegram import faults
from tests.fakes.telegram.chats import Shown
from tests.fakes.twilio import faults as twilio_faults
from tests.fakes.twilio.callbacks import StatusPlan
from tests.fakes.updates import Person
from tests.kit.agents import Echo
from tests.kit.conversation import ADA, PATIENT, endings, post
from tests.kit.passing import settle
from tests.kit.receipts import RECEIPTS
from tests.world import Running, World

ASK = Words.load().say(Text.UNCERTAIN_ASK_BUTTON)
REPLY = "SELECT part, state, attempts FROM outbox WHERE kind = 'reply' ORDER BY part"
DOUBLES = "answerback_double_receipts_total"


def doubles(running: Running) -> float | None:
    return running.process.rt.observer.registry.get_sample_value(DOUBLES)


async def long_reply(turn: Turn) -> str:
    return "\n\n".join(f"part {n} ".ljust(3900, ".") for n in (1, 2, 3))


def note(world: World) -> Shown:
    """The one note in Ada's chat."""
    [found] = [m for m in world.telegram.messages(ADA) if m.text == ASK]
    return found


def resend_button(shown: Shown) -> str:
    [[button]] = shown.buttons
    data: str = button["callback_data"]
    return data


async def test_b15_a_send_without_an_answer_is_uncertain_told_once_and_never_repeated(
    world: World,
) -> None:
    world.telegram.fail("sendMessage", faults.hang_after_storing())
    running = await world.start(agent=Echo(), **PATIENT)
    ada = Person(ADA)
    assert await post(running, ada.text("hello")) == [200]
    await settle(world)
    assert world.telegram.texts(ADA) == ["re: hello", ASK]
    assert await endings(world) == [("hello", "uncertain")]
    assert await world.rows(REPLY) == [(1, "uncertain", 1)]
    assert await post(running, ada.text("and now?")) == [200]
    await settle(world)
    assert world.telegram.texts(ADA) == ["re: hello", ASK, "re: and now?"]


async def test_the_button_sends_it_again_on_the_same_row_and_ends_answered(world: World) -> None:
    world.telegram.fail("sendMessage", faults.hang_before_storing())
    agent = Echo()
    running = await world.start(agent=agent, **PATIENT)
    ada = Person(ADA)
    assert await post(running, ada.text("hello")) == [200]
    await settle(world)
    data = resend_button(note(world))
    press = ada.press(data, query="cq1")
    assert await post(running, press, press, ada.press(data, query="cq2")) == [200] * 3
    await settle(world)
    assert world.telegram.texts(ADA).count("re: hello") == 1
    assert await world.rows(REPLY) == [(1, "sent", 2)]
    assert await endings(world) == [("hello", "answered")]
    assert agent.calls == {"hello": 1}


@pytest.mark.parametrize("stored", [True, False], ids=["it had arrived", "it had not"])
async def test_resend_sends_it_once_more_at_the_price_of_a_double(
    world: World, stored: bool
) -> None:
    fault = faults.hang_after_storing() if stored else faults.hang_before_storing()
    world.telegram.fail("sendMessage", fault)
    running = await world.start(agent=Echo(), uncertain_delivery="resend", **PATIENT)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await settle(world)
    assert world.telegram.texts(ADA) == ["re: hello"] * (2 if stored else 1)
    assert await endings(world) == [("hello", "answered")]


async def test_resend_is_not_for_ever(world: World) -> None:
    world.telegram.fail("sendMessage", faults.hang_before_storing(), times=2)
    running = await world.start(agent=Echo(), uncertain_delivery="resend", **PATIENT)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await settle(world)
    assert len(world.telegram.calls_of("sendMessage", ADA)) == 2
    assert await endings(world) == [("hello", "uncertain")]


async def test_hold_tells_only_the_operator(world: World) -> None:
    world.telegram.fail("sendMessage", faults.hang_before_storing())
    running = await world.start(agent=Echo(), uncertain_delivery="hold", **PATIENT)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await settle(world)
    assert world.telegram.texts(ADA) == []
    assert await endings(world) == [("hello", "uncertain")]


async def test_on_telegram_the_following_parts_go_out_at_once(world: World) -> None:
    world.telegram.fail("sendMessage", faults.hang_after_storing())
    running = await world.start(agent=long_reply, **PATIENT)
    assert await post(running, Person(ADA).text("tell me all")) == [200]
    await settle(world)
    shown = [text[:6] for text in world.telegram.texts(ADA)]
    assert shown == ["part 1", "part 2", "part 3", ASK[:6]]
    assert await world.rows(REPLY) == [(1, "uncertain", 1), (2, "sent", 1), (3, "sent", 1)]
    assert await endings(world) == [("tell me all", "uncertain")]


@pytest.mark.parametrize(
    ("fault", "attempts"),
    [
        (twilio_faults.drop_after_storing(), 1),
        (twilio_faults.hang_after_storing(), 1),
        (twilio_faults.bad_gateway(stores=True), 1),
        (twilio_faults.drop_before_storing(), 2),
        (twilio_faults.hang_before_storing(), 2),
        (twilio_faults.bad_gateway(stores=False), 2),
    ],
    ids=lambda value: getattr(value, "name", value),
)
async def test_on_whatsapp_the_list_tells_and_the_person_gets_it_once(
    world: World, fault: Fault, attempts: int
) -> None:
    world.twilio.plan = lambda _message: StatusPlan(("sent", "delivered"), told=False)
    world.twilio.fail("create", fault)
    agent = Echo()
    await world.start(agent=agent, **PATIENT)
    await world.twilio.inbound("hello")
    await settle(world)
    assert world.twilio.texts() == ["re: hello"]
    [(_, state, tries)] = await world.rows(REPLY)
    assert (state in ("sent", "delivered"), tries) == (True, attempts)
    assert await endings(world) == [("hello", "answered")]
    assert agent.calls == {"hello": 1}


async def test_on_whatsapp_the_following_parts_wait_for_the_looks(world: World) -> None:
    world.twilio.fail("create", twilio_faults.drop_before_storing())

    async def in_parts(turn: Turn) -> str:
        return "\n\n".join(f"part {n} ".ljust(1500, ".") for n in (1, 2, 3))

    await world.start(agent=in_parts, **PATIENT)
    await world.twilio.inbound("tell me all")
    await settle(world)
    assert [text[:6] for text in world.twilio.texts()] == ["part 1", "part 2", "part 3"]
    assert await endings(world) == [("tell me all", "answered")]
    [[waited]] = await world.rows(
        "SELECT (SELECT started_at FROM outbox WHERE part = 2 AND kind = 'reply') - "
        "(SELECT created_at FROM outbox WHERE part = 1 AND kind = 'reply')"
    )
    assert waited >= 120.0


async def _both_unheard(world: World) -> Running:
    """The answer was made at Twilio twice, nobody heard of either, and the list hides both."""
    world.twilio.hide_from_list()
    world.twilio.plan = lambda _message: StatusPlan.nothing()
    world.twilio.fail("create", twilio_faults.drop_after_storing(), times=2)
    running = await world.start(agent=Echo(), **PATIENT)
    await world.twilio.inbound("hello")
    await settle(world)
    assert await endings(world) == [("hello", "uncertain")]
    assert world.twilio.texts()[:2] == ["re: hello", "re: hello"]
    return running


async def test_a_late_witness_makes_an_uncertain_end_answered(world: World) -> None:
    running = await _both_unheard(world)
    first = world.twilio.messages()[0]
    await world.twilio.report(first.sid, "sent")
    assert await endings(world) == [("hello", "answered")]
    assert doubles(running) == 0.0


async def test_two_receipts_for_one_part_are_recorded_and_alarmed_once(world: World) -> None:
    running = await _both_unheard(world)
    first, second, *_ = world.twilio.messages()
    for sid in (first.sid, second.sid, first.sid, second.sid):
        await world.twilio.report(sid, "sent")
    await world.twilio.report(second.sid, "delivered")
    assert await world.rows(f"SELECT count(*) FROM {RECEIPTS} r JOIN outbox o ON o.id = r.outbox "
                            "WHERE o.kind = 'reply'") == [(2,)]  # fmt: skip
    assert await world.rows(
        "SELECT count(*) FROM events WHERE what = 'two receipts for one part'"
    ) == [(1,)]
    assert doubles(running) == 1.0


async def test_the_word_sends_it_again_where_there_are_no_buttons(world: World) -> None:
    world.twilio.fail("create", twilio_faults.drop_before_storing(), times=2)
    await world.start(agent=Echo(), **PATIENT)
    await world.twilio.inbound("hello")
    await settle(world)
    assert await endings(world) == [("hello", "uncertain")]
    assert "send again" in world.twilio.texts()[0] or "resend" in world.twilio.texts()[0]
    await world.twilio.inbound("resend")
    await settle(world)
    assert world.twilio.texts().count("re: hello") == 1
    assert await endings(world) == [("hello", "answered")]
