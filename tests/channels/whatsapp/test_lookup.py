"""An attempt whose answer never came is found again in Twilio's list, or shown not to be."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain.delivery import LateRefusal, Lookup, PartState, Sent, Unknown
from channels.whatsapp.compose import Wire
from channels.whatsapp.parse import TwilioMessage
from channels.whatsapp.records import find
from tests.channels.whatsapp.kit import NOON, PERSON, Line, line, part, ref, to
from tests.fakes.twilio import faults
from tests.fakes.twilio.callbacks import StatusPlan

NOBODY: frozenset[str] = frozenset()


def row(number: int = 1, **changes: Any) -> TwilioMessage:
    fields: dict[str, Any] = {
        "sid": f"SM{number:032x}",
        "direction": "outbound-api",
        "origin": "whatsapp:+15550100099",
        "target": PERSON,
        "body": "hello",
        "status": "sent",
        "error_code": "",
        "media_count": 0,
        "created": NOON + 1,
    }
    return TwilioMessage(**(fields | changes))


def found(*rows: TwilioMessage, wire: Wire | None = None, owned: frozenset[str] = NOBODY) -> object:
    return find(rows, wire or Wire(body="hello"), ref(), owned)


def test_the_same_words_of_that_time_are_the_attempt() -> None:
    assert found(row()) == Sent(row().sid)


@pytest.mark.parametrize(
    "changes",
    [
        {"body": "hello!"},
        {"direction": "inbound"},
        {"direction": "outbound-reply"},
        {"created": NOON - 4000},
        {"created": None},
        {"media_count": 1},
        {"sid": ""},
    ],
)
def test_anything_else_is_not(changes: dict[str, Any]) -> None:
    assert found(row(**changes)) is Lookup.NOT_FOUND


def test_a_message_of_another_part_is_not_adopted() -> None:
    assert found(row(), owned=frozenset({row().sid})) is Lookup.NOT_FOUND
    assert found(row(1), row(2), owned=frozenset({row(1).sid})) == Sent(row(2).sid)


def test_of_two_that_fit_the_oldest_is_taken() -> None:
    assert found(row(2, created=NOON + 9), row(1, created=NOON + 2)) == Sent(row(1).sid)


def test_a_difference_between_twilios_clock_and_ours_never_proves_that_nothing_was_sent() -> None:
    for seconds in (-50, -8, 8, 600, 7200):
        assert found(row(created=NOON + seconds)) == Sent(row().sid)
    for seconds in (-90, -3600):
        assert found(row(created=NOON + seconds)) is Lookup.CANNOT_TELL


def test_space_around_the_words_and_line_ends_do_not_count() -> None:
    wire = Wire(body="a\nb ")
    assert found(row(body="a\r\nb"), wire=wire) == Sent(row().sid)


def test_a_file_is_known_by_its_caption_its_link_or_its_having_no_words() -> None:
    photo = Wire(body="A cat", media="https://f.example/c", fallback="A cat\nhttps://f.example/c")
    assert found(row(body="A cat", media_count=1), wire=photo) == Sent(row().sid)
    assert found(row(body="A cat\nhttps://f.example/c"), wire=photo) == Sent(row().sid)
    bare = Wire(media="https://f.example/c")
    assert found(row(body="", media_count=1), wire=bare) == Sent(row().sid)
    assert found(row(body="other", media_count=1), wire=bare) is Lookup.NOT_FOUND


def test_a_template_is_certain_only_when_nothing_was_sent() -> None:
    template = Wire(content="HX1")
    assert found(wire=template) is Lookup.NOT_FOUND
    assert found(row(body="Your answer is ready"), wire=template) is Lookup.CANNOT_TELL


async def ambiguous(at: Line, body: str = "hello") -> None:
    outcome = await at.channel.send(to(), part(body), ref(at=at.clock.at))
    assert isinstance(outcome, Unknown)


async def look(at: Line, owned: frozenset[str] = NOBODY, body: str = "hello") -> Sent | Lookup:
    started = NOON
    return await at.channel.look_up(to(), part(body), ref(at=started), owned)


async def test_b15_an_ambiguous_create_is_found_and_adopted() -> None:
    async with line() as at:
        at.fake.fail("create", faults.server_error(stores=True))
        await ambiguous(at)
        at.clock.at += 2
        (message,) = at.fake.messages()
        assert await look(at) == Sent(message.sid)
        assert len(at.fake.calls_of("create")) == 1


async def test_b15_an_ambiguous_create_that_did_nothing_is_not_found() -> None:
    async with line() as at:
        at.fake.fail("create", faults.server_error(stores=False))
        await ambiguous(at)
        assert await look(at) is Lookup.NOT_FOUND


async def test_a_list_that_lags_shows_it_at_a_later_look() -> None:
    async with line() as at:
        at.fake.fail("create", faults.bad_gateway())
        at.fake.list_lag = 1
        await ambiguous(at)
        assert await look(at) is Lookup.NOT_FOUND
        assert isinstance(await look(at), Sent)


async def test_a_queued_message_is_found_although_it_has_no_date_of_sending() -> None:
    async with line() as at:
        at.fake.plan = lambda message: StatusPlan.nothing()
        at.fake.fail("create", faults.bad_gateway())
        await ambiguous(at)
        assert isinstance(await look(at), Sent)


async def test_equal_words_sent_before_are_not_mistaken_for_the_attempt() -> None:
    async with line() as at:
        at.clock.at = NOON - 300
        await at.channel.send(to(), part("hello"), ref(1))
        at.clock.at = NOON
        assert await look(at) is Lookup.CANNOT_TELL
        (message,) = at.fake.messages()
        assert await look(at, owned=frozenset({message.sid})) is Lookup.NOT_FOUND


async def test_messages_to_other_people_are_not_looked_at() -> None:
    async with line() as at:
        await at.channel.send(to("whatsapp:+15550100016"), part("hello"), ref(1))
        assert await look(at) is Lookup.NOT_FOUND


async def test_a_long_list_is_read_back_to_the_attempt() -> None:
    async with line() as at:
        at.fake.fail("create", faults.bad_gateway())
        await ambiguous(at)
        for number in range(120):
            at.clock.at += 1
            await at.channel.send(to(), part(f"later {number}"), ref(8 + number))
        assert isinstance(await look(at), Sent)


async def test_a_list_that_is_too_long_or_does_not_come_can_not_tell() -> None:
    async with line() as at:
        for number in range(260):
            await at.channel.send(to(), part(f"later {number}"), ref(8 + number))
        assert await look(at) is Lookup.CANNOT_TELL
    async with line() as at:
        for fault in (faults.server_error(), faults.not_json(), faults.cut_answer()):
            at.fake.fail("list", fault)
            assert await look(at) is Lookup.CANNOT_TELL


async def test_a_status_can_be_asked_for_when_callbacks_do_not_come() -> None:
    async with line() as at:
        at.fake.plan = lambda message: StatusPlan.failing(63024)
        await at.channel.send(to(), part("hello"), ref())
        (message,) = [m for m in at.fake.book.all.values() if m.to == PERSON]
        await at.fake.wait_for(lambda: message.status == "failed")
        status = await at.channel.status(message.sid)
        assert status is not None
        assert (status.receipt, status.state) == (message.sid, PartState.REFUSED)
        assert (status.provider_status, status.code) == ("failed", "63024")
        assert at.channel.reaction(status.code) is LateRefusal.PERMANENT_CHAT
        assert at.channel.explain(status.code) == "the person is not on WhatsApp (63024)"
        assert at.channel.resend_after("63018") == 30.0
        assert await at.channel.status("SM" + "9" * 32) is None


async def test_the_account_tells_by_how_much_our_clock_differs_from_twilios() -> None:
    async with line() as at:
        theirs = at.clock.at
        at.fake.now = lambda: theirs
        at.clock.at += 45.0
        assert await at.channel.clock_ahead() == 45.0
