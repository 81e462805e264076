"""Status callbacks: forward only, harmless when repeated, and asked for where none come."""

from __future__ import annotations

from functools import partial

import pytest

from bot import settings
from bot.domain.decisions.retry import RetryPolicy
from bot.domain.reply import FileOut, Reply
from bot.leases.checkpoints import Checkpoint
from tests.fakes.twilio.callbacks import StatusPlan
from tests.kit.receipts import RECEIPTS
from tests.kit.whatsapp import CALM, answering, asked, echo, endings, parts, sent, three_parts
from tests.world import World

ONE = "SELECT state, provider_status, code, attempts FROM outbox WHERE kind = 'reply'"


async def test_b107_a_state_moves_forward_only_and_nothing_is_run_or_sent(world: World) -> None:
    world.twilio.plan = lambda _message: StatusPlan.nothing()
    await world.start(agent=echo)
    await world.twilio.inbound("hello")
    await world.settled()
    (message,) = world.twilio.messages()
    seen = []
    for status in ("delivered", "sent", "queued", "delivered", "read", "delivered"):
        (attempt,) = await world.twilio.report(message.sid, status)
        assert attempt.acknowledged
        seen.append((await world.rows(ONE))[0].state)
    assert seen == ["delivered", "delivered", "delivered", "delivered", "read", "read"]
    assert await endings(world) == ["answered"]
    assert len(world.twilio.calls_of("create")) == 1


async def test_parts_never_swap_each_waits_for_the_one_before(world: World) -> None:
    world.twilio.plan = lambda _message: StatusPlan.nothing()
    await world.start(agent=three_parts)
    await world.twilio.inbound("hello")
    for count in (1, 2, 3):
        *_, last = await sent(world, count)
        await world.twilio.report(last.sid, "sent")
    await world.settled()
    assert [text[0] for text in world.twilio.texts()] == ["1", "2", "3"]


async def test_a_report_that_comes_before_anybody_waits_for_it_lets_the_next_part_go(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = partial(RetryPolicy, status_wait=1e9, ask_status_every=1e9)
    monkeypatch.setattr(settings, "RetryPolicy", patient)
    world.twilio.plan = lambda _message: StatusPlan.nothing()

    async def reached(checkpoint: Checkpoint) -> None:
        if checkpoint is Checkpoint.PART_RECORDED:
            *_, last = world.twilio.messages()
            await world.twilio.report(last.sid, "sent")

    await world.start(agent=three_parts, reached=reached)
    await world.twilio.inbound("hello")
    await world.settled()
    assert [text[0] for text in world.twilio.texts()] == ["1", "2", "3"]


async def test_without_callbacks_the_status_is_asked_for(world: World) -> None:
    world.twilio.plan = lambda _message: StatusPlan(("sent",), told=False)
    await world.start(agent=three_parts)
    await world.twilio.inbound("hello")
    await world.settled()
    assert [text[0] for text in world.twilio.texts()] == ["1", "2", "3"]
    assert 2 <= len(world.twilio.calls_of("fetch")) <= 4
    assert await endings(world) == ["answered"]


async def test_a_part_that_is_never_reported_on_holds_up_the_next_for_half_a_minute(
    world: World,
) -> None:
    world.twilio.plan = lambda _message: StatusPlan.nothing()
    await world.start(agent=three_parts, **CALM)
    await world.twilio.inbound("hello")
    for count in (1, 2):
        await sent(world, count)
        await asked(world, "fetch", count)
        world.advance(30)
    await world.settled()
    assert [text[0] for text in world.twilio.texts()] == ["1", "2", "3"]


async def test_a_callback_before_our_own_call_returned_is_the_receipt(world: World) -> None:
    world.twilio.plan = lambda _message: StatusPlan(("sent", "delivered"), before_answer=True)
    await world.start(agent=echo)
    await world.twilio.inbound("hello")
    await world.settled()
    assert (await world.rows(ONE))[0][:2] == ("delivered", "delivered")
    assert await world.rows(f"SELECT count(*) FROM {RECEIPTS} r") == [(1,)]
    assert await endings(world) == ["answered"]


async def test_a_word_on_a_message_that_is_not_ours_changes_nothing(world: World) -> None:
    await world.start(agent=echo)
    await world.twilio.inbound("hello")
    await world.settled()
    (message,) = world.twilio.messages()
    ours = "https://bot.example.test/whatsapp/status"
    form = [("MessageSid", "SM" + "e" * 32), ("MessageStatus", "failed"), ("ErrorCode", "63014")]
    for url in (ours, f"{ours}?r=999999&a=1", f"{ours}?r=1&a=9"):
        (attempt,) = await world.twilio.repeat(form, url)
        assert attempt.acknowledged
    assert (await world.rows(ONE))[0].state in ("sent", "delivered")
    assert await world.rows(f"SELECT count(*) FROM {RECEIPTS} r") == [(1,)]
    assert message.sid


async def test_a_word_on_what_an_earlier_database_sent_is_not_taken_for_this_one(
    world: World,
) -> None:
    world.twilio.plan = lambda _message: StatusPlan.nothing()
    await world.start(agent=echo)
    await world.twilio.inbound("hello")
    await world.settled()
    url = "https://bot.example.test/whatsapp/status?r=1&a=1&t=1700000000"
    form = [("MessageSid", "SM" + "e" * 32), ("MessageStatus", "read")]
    (attempt,) = await world.twilio.repeat(form, url)
    assert attempt.acknowledged
    assert (await world.rows(ONE))[0].state == "sent"
    assert await world.rows(f"SELECT count(*) FROM {RECEIPTS} r") == [(1,)]


@pytest.mark.parametrize("code", [63014, 63003, 63013, 63032, 99_999])
async def test_a_failure_that_comes_late_shows_on_the_run_and_is_not_sent_again(
    world: World, code: int
) -> None:
    world.twilio.plan = lambda _message: StatusPlan(("sent", "undelivered"), code)
    await world.start(agent=echo, **CALM)
    await world.twilio.inbound("hello")
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("undeliverable",)])
    world.advance(120)
    assert await parts(world) == [(1, "refused", 1, str(code))]
    ((detail,),) = await world.rows("SELECT detail FROM runs")
    assert str(code) in detail
    assert len(world.twilio.calls_of("create")) == 1


async def test_the_first_error_code_stays(world: World) -> None:
    world.twilio.plan = lambda _message: StatusPlan.nothing()
    await world.start(agent=echo)
    await world.twilio.inbound("hello")
    await world.settled()
    (message,) = world.twilio.messages()
    await world.twilio.report(message.sid, "sent")
    await world.twilio.report(message.sid, "undelivered", 63013)
    await world.twilio.report(message.sid, "failed", 63032)
    await world.twilio.report(message.sid, "sent")
    assert await parts(world) == [(1, "refused", 1, "63013")]


async def test_what_is_delivered_after_it_had_failed_is_answered(world: World) -> None:
    world.twilio.plan = lambda _message: StatusPlan.nothing()
    await world.start(agent=echo)
    await world.twilio.inbound("hello")
    await world.settled()
    (message,) = world.twilio.messages()
    await world.twilio.report(message.sid, "undelivered", 63013)
    assert await endings(world) == ["undeliverable"]
    await world.twilio.report(message.sid, "delivered")
    assert await endings(world) == ["answered"]
    assert (await world.rows(ONE))[0].state == "delivered"


WAITS = (
    "SELECT outbox.state, resends FROM outbox JOIN runs ON runs.id = outbox.run "
    "WHERE kind = 'reply' AND runs.state <> 'running'"
)


async def test_a_failure_that_proves_nothing_left_is_sent_once_more_after_a_while(
    world: World,
) -> None:
    world.twilio.plan = lambda _message: StatusPlan.nothing()
    await world.start(agent=echo, **CALM)
    await world.twilio.inbound("hello")
    await world.settled()
    (message,) = world.twilio.messages()
    await world.twilio.report(message.sid, "sent")
    await world.twilio.report(message.sid, "undelivered", 63010)
    assert await endings(world) == ["uncertain"]
    assert len(world.twilio.calls_of("create")) == 1
    world.twilio.plan = lambda _message: StatusPlan()
    world.advance(31)
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("answered",)])
    assert len(world.twilio.calls_of("create")) == 2
    assert await world.rows("SELECT count(*) FROM events WHERE what LIKE 'two receipts%'") == [(0,)]


async def test_it_is_never_sent_a_third_time(world: World) -> None:
    world.twilio.plan = lambda _message: StatusPlan(("undelivered",), 63010)
    await world.start(agent=echo, **CALM)
    await world.twilio.inbound("hello")
    # Not before its run is given back: the clock would leap between two looks at it.
    await world.until(WAITS, lambda rows: rows == [("pending", 1)])
    world.advance(31)
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("undeliverable",)])
    world.advance(600)
    await world.settled()
    assert len(world.twilio.calls_of("create")) == 2
    assert await parts(world) == [(1, "refused", 2, "63010")]


async def test_a_file_that_is_refused_later_goes_out_as_words_with_its_link(world: World) -> None:
    world.twilio.plan = lambda message: (
        StatusPlan(("undelivered",), 63019) if message.media_urls else StatusPlan()
    )
    picture = FileOut("photo", url="https://files.example.test/cat.jpg", caption="a cat")
    await world.start(agent=answering(Reply(files=(picture,))))
    await world.twilio.inbound("show me")
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("answered",)])
    await world.until(
        "SELECT count(*) FROM outbox WHERE state = 'delivered'", lambda rows: rows[0][0] == 1
    )
    assert world.twilio.texts() == ["a cat\nhttps://files.example.test/cat.jpg"]


async def test_an_account_that_is_suspended_keeps_its_outbox(world: World) -> None:
    world.twilio.plan = lambda _message: StatusPlan(("failed",), 30002)
    await world.start(agent=echo, **CALM)
    await world.twilio.inbound("hello")
    await world.until(
        "SELECT down_reason FROM accounts WHERE channel = 'whatsapp'", lambda rows: bool(rows[0][0])
    )
    await world.until(
        "SELECT state FROM outbox WHERE kind = 'reply'", lambda rows: rows == [("pending",)]
    )
    world.twilio.plan = lambda _message: StatusPlan()
    world.advance(130)
    await world.until("SELECT ending FROM runs", lambda rows: rows == [("answered",)])
    assert world.twilio.texts() == ["you said: hello"]


@pytest.mark.parametrize("code", [21408, 21656, 63042, 63038])
async def test_a_setting_that_one_message_lacks_does_not_take_the_channel_down(
    world: World, code: int
) -> None:
    world.twilio.plan = lambda _message: StatusPlan(("sent", "failed"), code)
    await world.start(agent=echo)
    await world.twilio.inbound("hello")
    await world.until("SELECT 1 FROM events WHERE what = 'refused after it was taken'", bool)
    assert await world.rows("SELECT down_since FROM accounts WHERE channel = 'whatsapp'") == [
        (None,)
    ]


async def test_a_status_that_comes_to_the_message_url_makes_no_run(world: World) -> None:
    await world.start(agent=echo)
    await world.twilio.inbound("hello")
    await world.settled()
    (message,) = world.twilio.messages()
    form = [
        ("MessageSid", message.sid),
        ("MessageStatus", "delivered"),
        ("SmsStatus", "delivered"),
        ("From", message.from_),
        ("To", message.to),
    ]
    (attempt,) = await world.twilio.repeat(form)
    assert attempt.acknowledged
    assert await world.rows("SELECT count(*) FROM runs") == [(1,)]
    assert len(world.twilio.messages()) == 1


async def test_a_block_that_is_reported_after_the_person_wrote_again_parks_nothing(
    world: World,
) -> None:
    world.twilio.plan = lambda _message: StatusPlan.nothing()
    await world.start(agent=echo, **CALM)
    await world.twilio.inbound("first")
    await world.settled()
    (old,) = world.twilio.messages()
    world.advance(10)
    world.twilio.plan = lambda _message: StatusPlan()
    await world.twilio.inbound("second")
    await world.twilio.report(old.sid, "undelivered", 63014)
    await world.settled()
    await world.twilio.inbound("third")
    await world.settled()
    assert world.twilio.texts() == ["you said: second", "you said: third"]
    assert await endings(world) == ["undeliverable", "answered", "answered"]


@pytest.mark.parametrize("code", [63010, 63016, 63019, 30002])
async def test_what_the_person_stopped_is_not_sent_again_whatever_the_platform_says(
    world: World, code: int
) -> None:
    world.twilio.plan = lambda _message: StatusPlan.nothing()
    await world.start(
        agent=three_parts,
        **CALM,
        twilio_template_sid="HX1",
        twilio_template_variables={"1": "{reply}"},
    )
    await world.twilio.inbound("hello")
    (first,) = await sent(world, 1)
    await world.twilio.inbound("/stop")
    await world.settled()
    assert await endings(world) == ["withdrawn"]
    await world.twilio.report(first.sid, "undelivered", code)
    world.advance(130)
    await world.settled()
    assert [row[1] for row in await parts(world)] == ["refused", "dropped", "dropped"]
    assert await endings(world) == ["withdrawn"]
