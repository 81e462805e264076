"""Proofs of a send, against a Twilio that misbehaves."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from bot.domain.delivery import (
    ChannelDown,
    LimitOf,
    NotSent,
    Outcome,
    Refused,
    Scope,
    Sent,
    Unknown,
)
from bot.domain.ports import Channel
from bot.domain.reply import Button, FileOut, PartBody, Reply
from channels.whatsapp.errors import COPY_BOTH
from tests.channels.whatsapp.kit import PERSON, Line, line, part, ref, to
from tests.fakes.faults import Answer, Fault, answers_within
from tests.fakes.twilio import faults
from tests.fakes.twilio.server import ACCOUNT, SENDER
from tests.fakes.windows import Window

STATUS = "https://bot.example/whatsapp/status"
QUICK: dict[str, Any] = {"twilio_timeout": 1.0}


async def send(at: Line, body: PartBody | None = None) -> Outcome:
    return await at.channel.send(to(), body or part("hello"), ref())


async def test_a_message_that_twilio_took_has_its_sid_as_receipt() -> None:
    async with line() as at:
        channel: Channel = at.channel
        outcome = await channel.send(to(), part("hello"), ref())
        (message,) = at.fake.messages(PERSON)
        assert outcome == Sent(message.sid)
        assert (message.body, message.from_) == ("hello", SENDER)
        assert at.fake.violations == []


async def test_a_status_callback_carries_the_name_of_the_attempt() -> None:
    async with line() as at:
        await at.channel.send(to(), part("hello"), ref(71, 2, 1_800_000_000.7))
        (message,) = at.fake.messages()
        assert message.callback == f"{STATUS}?r=71&a=2&t=1800000000#rc=5&rp=all&ct=1500&rt=4000"


async def test_without_a_public_url_no_callback_is_asked_for() -> None:
    async with line(public_url="") as at:
        await send(at)
        assert "StatusCallback" not in at.fake.calls[0].params


async def test_an_opaque_address_is_sent_to_as_it_came() -> None:
    async with line() as at:
        await at.channel.send(to("whatsapp:AR.1A2B3C4D5E6F7a8b9c0d"), part("hola"), ref())
        assert at.fake.texts("whatsapp:AR.1A2B3C4D5E6F7a8b9c0d") == ["hola"]


@pytest.mark.parametrize(
    "fault",
    [
        faults.hang_after_storing(),
        faults.hang_before_storing(),
        faults.drop_after_storing(),
        faults.drop_before_storing(),
        faults.cut_answer(),
        faults.not_json(),
        faults.bad_gateway(),
        faults.empty_body(),
        faults.empty_body(201),
        faults.server_error(),
        faults.unavailable(retry_after=3),
    ],
    ids=lambda fault: str(fault.name),
)
async def test_b15_what_may_have_arrived_is_unknown_and_asked_for_once(fault: Fault) -> None:
    async with line(twilio_timeout=answers_within(fault)) as at:
        assert isinstance(await send(at), Sent)  # The connection is there already.
        at.fake.fail("create", fault, times=None)
        assert isinstance(await send(at), Unknown)
        assert len(at.fake.calls_of("create")) == 2


async def test_b17_a_refused_connection_proves_that_nothing_was_sent() -> None:
    async with line() as at:
        await at.fake.refuse_connections()
        outcome = await send(at)
        assert isinstance(outcome, NotSent)
        assert not outcome.limited
        await at.fake.accept_connections()
        assert isinstance(await send(at), Sent)
        assert at.fake.texts() == ["hello"]


async def test_b17_a_name_that_is_not_known_proves_that_nothing_was_sent() -> None:
    async with line(twilio_api_url="http://twilio.invalid", **QUICK) as at:
        assert isinstance(await send(at), NotSent)


async def test_a_rate_limit_was_never_processed_and_names_its_wait() -> None:
    async with line() as at:
        at.fake.fail("create", faults.too_many(37))
        outcome = await send(at)
        assert outcome == NotSent("too many requests", "20429", 37.0, LimitOf.ACCOUNT)
        assert at.fake.texts() == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (21211, Refused(Scope.CHAT, "the person's address can't be reached", "21211")),
        (21610, Refused(Scope.CONSENT, "the person opted out", "21610")),
        (63015, Refused(Scope.CHAT, "the person has not joined the sandbox", "63015")),
        (20003, ChannelDown(f"the account or its token is refused: {COPY_BOTH}", "20003")),
        (63007, ChannelDown("the sender is not set up for WhatsApp", "63007")),
        (99999, Refused(Scope.PAYLOAD, "Twilio refused it with code 99999", "99999")),
    ],
)
async def test_a_refusal_says_what_it_is_about(code: int, expected: Outcome) -> None:
    async with line() as at:
        at.fake.fail("create", faults.refused(code))
        assert await send(at) == expected


async def test_b47_outside_the_window_one_attempt_is_refused_as_closed() -> None:
    async with line() as at:
        at.fake.window = Window.SYNC
        outcome = await send(at)
        assert isinstance(outcome, Refused)
        assert (outcome.scope, outcome.code) == (Scope.WINDOW, "63016")
        assert len(at.fake.calls) == 1


async def test_b47_a_template_goes_out_when_the_window_is_closed() -> None:
    async with line(
        twilio_template_sid="HX" + "1" * 32, twilio_template_variables={"1": "{reply}"}
    ) as at:
        at.fake.window = Window.SYNC
        made = at.channel.outside_window("your *answer*")
        assert made is not None
        assert isinstance(await send(at, made), Sent)
        (message,) = at.fake.messages()
        assert message.content_sid == "HX" + "1" * 32
        assert message.content_variables == '{"1": "your answer"}'
        assert at.fake.violations == []


async def test_b33_a_long_reply_leaves_in_order_and_every_part_is_taken() -> None:
    async with line() as at:
        source = "a" * 800 + " " + "x" * 1700 + " " + "b" * 798
        for body in at.channel.compose(Reply(source), to()):
            assert isinstance(await send(at, body), Sent)
        assert len(at.fake.texts()) >= 3
        assert all(len(text) <= 1600 for text in at.fake.texts())
        assert "".join(at.fake.texts()).replace(" ", "") == source.replace(" ", "")


async def test_a_file_that_is_refused_goes_out_as_a_link_in_the_same_send() -> None:
    async with line() as at:
        file = FileOut("photo", url="https://files.example/cat.jpg", caption="A cat")
        (photo,) = at.channel.compose(Reply(files=(file,)), to())
        at.fake.fail("create", faults.refused(21620))
        assert isinstance(await send(at, photo), Sent)
        assert at.fake.texts() == ["A cat\nhttps://files.example/cat.jpg"]


async def test_a_file_is_never_followed_by_its_link_when_it_may_have_arrived() -> None:
    async with line() as at:
        file = FileOut("photo", url="https://files.example/cat.jpg", caption="A cat")
        (photo,) = at.channel.compose(Reply(files=(file,)), to())
        at.fake.fail("create", faults.server_error())
        assert isinstance(await send(at, photo), Unknown)
        assert at.fake.texts() == ["A cat"]
        (message,) = at.fake.messages()
        assert message.media_urls == ["https://files.example/cat.jpg"]


async def test_buttons_that_twilio_does_not_know_become_a_list() -> None:
    async with line(twilio_choice_templates={1: "HX" + "2" * 32}) as at:
        (choice,) = at.channel.compose(Reply("Go on?", (Button("Yes", "y"),)), to())
        at.fake.fail("create", faults.refused(21656))
        assert isinstance(await send(at, choice), Sent)
        assert at.fake.texts() == ["Go on?\n\n1. Yes"]


async def test_a_stored_part_that_can_not_be_read_is_refused_and_not_raised() -> None:
    async with line() as at:
        outcome = await send(at, PartBody("hello", "not json"))
        assert isinstance(outcome, Refused)
        assert at.fake.calls == []


async def test_a_cancelled_send_is_raised_and_not_swallowed() -> None:
    async with line() as at:
        at.fake.fail("create", faults.hang_after_storing())
        task = asyncio.get_running_loop().create_task(send(at))
        await at.fake.wait_for(at.fake.texts)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_no_number_word_or_token_is_logged_or_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with line(**QUICK) as at:
        told = [repr(at.channel.settings)]
        for fault in (faults.refused(21211), faults.server_error(), faults.hang_before_storing()):
            at.fake.fail("create", fault)
            told.append(repr(await send(at, part("a private word"))))
        await at.channel.look_up(to(), part("a private word"), ref(), frozenset())
        await at.channel.send(to(), part("a private word"), ref())
    ours = [r.getMessage() for r in caplog.records if not r.name.startswith("tests")]
    for text in [*ours, *told]:
        for secret in ("15550100015", "a private word", "test-auth-token-0001"):
            assert secret not in text


async def test_the_environment_of_the_process_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {
        "TWILIO_REGION": "au1",
        "TWILIO_EDGE": "sydney",
        "TWILIO_ACCOUNT_SID": "AC" + "9" * 32,
        "TWILIO_AUTH_TOKEN": "another",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    async with line() as at:
        assert isinstance(await send(at), Sent)
        assert at.fake.calls[0].account == ACCOUNT


async def test_typing_is_shown_for_the_message_that_is_answered() -> None:
    async with line() as at:
        await at.channel.typing(to(reply_to="SM" + "3" * 32))
        assert at.fake.typing == ["SM" + "3" * 32]
        assert at.fake.violations == []


async def test_typing_never_stands_in_the_way() -> None:
    async with line() as at:
        at.fake.fail("typing", faults.server_error(), times=None)
        await at.channel.typing(to(reply_to="SM" + "3" * 32))
        await at.channel.typing(to())
        await at.fake.refuse_connections()
        await at.channel.typing(to(reply_to="SM" + "3" * 32))
    async with line(twilio_typing=False) as at:
        await at.channel.typing(to(reply_to="SM" + "3" * 32))
        assert at.fake.calls == []


@pytest.mark.parametrize("sid", ["", None, 7, "SM" + "9" * 100_000], ids=["", "null", "7", "long"])
async def test_an_answer_that_names_no_message_leaves_the_send_uncertain(sid: object) -> None:
    odd = Fault("odd_sid", stores=True, answer=Answer.of(201, {"sid": sid}))
    async with line() as at:
        at.fake.fail("create", odd)
        assert await send(at) == Unknown("Twilio's answer names no message")
