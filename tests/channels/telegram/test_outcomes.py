"""Proofs of failed sends: the whole table, against a Bot API that misbehaves."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from telegram.error import NetworkError, TelegramError, TimedOut

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
from channels.telegram.api import Rejected
from channels.telegram.errors import ASK_BOTFATHER, TOPIC_GONE, outcome_of
from tests.channels.telegram.kit import line, private
from tests.fakes.faults import Answer, Fault, Misbehaviour, answers_within
from tests.fakes.telegram import faults

CHAT = 700100201


def answered(status: int, body: bytes, *headers: tuple[str, str], stores: bool = True) -> Fault:
    return Fault("answered", stores=stores, answer=Answer(status, body, headers=headers))


def json(status: int, text: str, *headers: tuple[str, str], stores: bool = False) -> Fault:
    return answered(status, text.encode(), *headers, stores=stores)


_HUGE = "9" * 400
NOT_SENT: list[tuple[Misbehaviour, Outcome]] = [
    (faults.too_many(37), NotSent("too many requests", "429", 37.0, LimitOf.UNTOLD)),
    (faults.too_many_unnamed(), NotSent("too many requests", "429", None, LimitOf.UNTOLD)),
    (
        json(429, "busy", ("Retry-After", "5")),
        NotSent("too many requests", "429", 5.0, LimitOf.UNTOLD),
    ),
    *(
        (
            json(429, f'{{"ok":false,"parameters":{{"retry_after":{wait}}}}}'),
            NotSent("too many requests", "429", None, LimitOf.UNTOLD),
        )
        for wait in (_HUGE, "1e999", "NaN", "-1", "true", '"5"')
    ),
    (
        json(400, f'{{"ok":false,"parameters":{{"migrate_to_chat_id":{_HUGE}}}}}'),
        Refused(Scope.PAYLOAD, "no description", "400"),
    ),
    (
        json(400, '{"ok":false,"description":"Bad Request: a\\u0000b\\ud800c"}'),
        Refused(Scope.PAYLOAD, "a\ufffdb\ufffdc", "400"),
    ),
    (
        json(200, f'{{"ok":false,"error_code":{_HUGE},"description":"new"}}'),
        Refused(Scope.PAYLOAD, "new", "400"),
    ),
    (
        faults.migrated(-1007000000301),
        NotSent("group chat was upgraded to a supergroup chat", "400", moved_to="-1007000000301"),
    ),
    (
        faults.refused(409, "Conflict: terminated by other getUpdates request; x"),
        NotSent("terminated by other getUpdates request; x", "409"),
    ),
    (
        faults.blocked(),
        Refused(Scope.CHAT, "bot was blocked by the user", "403"),
    ),
    (faults.kicked(), Refused(Scope.CHAT, "bot was kicked from the group chat", "403")),
    (faults.deactivated(), Refused(Scope.CHAT, "user is deactivated", "403")),
    (faults.refused(403, "Forbidden: new"), Refused(Scope.CHAT, "new", "403")),
    (faults.chat_not_found(), Refused(Scope.CHAT, "chat not found", "400")),
    (faults.topic_not_found(), Refused(Scope.CHAT, "message thread not found", TOPIC_GONE)),
    (faults.topic_closed(), Refused(Scope.CHAT, "TOPIC_CLOSED", TOPIC_GONE)),
    (
        faults.unauthorized(),
        ChannelDown(f"the token is refused (Unauthorized): {ASK_BOTFATHER}", "401"),
    ),
    (
        faults.refused(404, "Not Found"),
        ChannelDown(f"the token is refused (Not Found): {ASK_BOTFATHER}", "404"),
    ),
    (json(413, "<html>"), Refused(Scope.PAYLOAD, "no description", "413")),
    (
        json(200, '{"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by x"}'),
        Refused(Scope.CHAT, "bot was blocked by x", "403"),
    ),
]

MAYBE: list[tuple[Misbehaviour, int]] = [
    (faults.hang_after_storing(), 1),
    (faults.hang_before_storing(), 0),
    (faults.drop_after_storing(), 1),
    (faults.drop_before_storing(), 0),
    (faults.drop_unread(), 0),
    (faults.cut_answer(), 1),
    (faults.server_error(), 1),
    (faults.bad_gateway(), 1),
    (faults.bad_gateway(stores=False), 0),
    (json(504, "<html>"), 0),
    (json(302, ""), 0),
    (faults.not_json(), 1),
    (faults.empty_body(), 1),
    (answered(200, b"[1]"), 1),
]

TAKEN = [
    faults.no_result(),
    answered(200, b'{"ok":true,"result":{}}'),
    answered(200, b'{"ok":true,"result":true}'),
    answered(200, b'{"ok":true,"result":{"message_id":0}}'),
    answered(200, b'{"ok":true,"result":{"message_id":12,"te'),
]


@pytest.mark.parametrize(("fault", "outcome"), NOT_SENT, ids=lambda v: getattr(v, "name", ""))
async def test_a_refusal_shows_nothing_and_says_why(fault: Misbehaviour, outcome: Outcome) -> None:
    async with line() as at:
        at.fake.fail("sendMessage", fault, times=None)
        assert await at.send() == outcome
        assert at.fake.messages(CHAT) == []


@pytest.mark.parametrize(("fault", "shown"), MAYBE, ids=lambda v: getattr(v, "name", str(v)))
async def test_what_may_have_arrived_is_unknown_and_not_repeated(
    fault: Misbehaviour, shown: int
) -> None:
    async with line(telegram_read_timeout=answers_within(fault)) as at:
        at.fake.fail("sendMessage", fault, times=None)
        outcome = await at.send()
        assert isinstance(outcome, Unknown), outcome
        assert len(at.fake.messages(CHAT)) == shown
        assert len(at.fake.calls_of("sendMessage")) == 1


@pytest.mark.parametrize("fault", TAKEN, ids=lambda fault: str(fault.answer.body[:40]))
async def test_a_success_that_does_not_name_the_message_counts_as_sent(fault: Fault) -> None:
    async with line() as at:
        at.fake.fail("sendMessage", fault)
        assert await at.send() == Sent("")
        assert len(at.fake.messages(CHAT)) == 1


async def test_a_message_that_telegram_took_has_its_id_as_receipt() -> None:
    async with line() as at:
        outcome = await at.send()
        (message,) = at.fake.messages(CHAT)
        assert outcome == Sent(str(message.message_id))
        assert at.fake.violations == []


@pytest.mark.parametrize("url", ["http://host.invalid", "http://[::bad", "https://{fake}"])
async def test_without_a_connection_nothing_was_sent(url: str) -> None:
    async with line() as at:
        base = url.replace("https://{fake}", at.fake.url.replace("http", "https"))
        async with line(api_url=base) as lost:
            assert isinstance(await lost.send(), NotSent)


async def test_a_refused_connection_and_a_closed_channel_send_nothing() -> None:
    async with line() as at:
        await at.fake.refuse_connections()
        assert await at.send() == NotSent("no connection: ConnectError")
        await at.channel.close()
        assert await at.send() == NotSent("the channel is closed")


@pytest.mark.parametrize(
    ("cause", "sent"),
    [
        (httpx.ConnectError("x"), False),
        (httpx.ConnectTimeout("x"), False),
        (httpx.PoolTimeout("x"), False),
        (httpx.ProxyError("x"), False),
        (httpx.UnsupportedProtocol("x"), False),
        (httpx.InvalidURL("x"), False),
        (httpx.ReadTimeout("x"), True),
        (httpx.WriteTimeout("x"), True),
        (httpx.ReadError("x"), True),
        (httpx.WriteError("x"), True),
        (httpx.RemoteProtocolError("x"), True),
        (TimeoutError(), True),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("kind", [NetworkError, TimedOut])
def test_the_cause_tells_whether_a_request_was_begun(
    cause: Exception, kind: type[NetworkError], *, sent: bool
) -> None:
    error = kind("text")
    error.__cause__ = cause
    assert isinstance(outcome_of(error), Unknown if sent else NotSent)


@pytest.mark.parametrize(
    "error", [TelegramError("x"), KeyError("x"), asyncio.CancelledError(), NetworkError("x")]
)
def test_anything_else_is_unknown(error: BaseException) -> None:
    assert isinstance(outcome_of(error), Unknown)


@pytest.mark.parametrize(
    ("description", "scope"),
    [
        ("message is too long", Scope.PAYLOAD),
        ("text is too long", Scope.PAYLOAD),
        ("message text is empty", Scope.PAYLOAD),
        ("can't parse entities: Can't find end", Scope.PAYLOAD),
        ("entities too long", Scope.PAYLOAD),
        ("message to be replied not found", Scope.PAYLOAD),
        ("wrong file identifier/HTTP URL specified", Scope.PAYLOAD),
        ("file is too big", Scope.PAYLOAD),
        ("BUTTON_DATA_INVALID", Scope.PAYLOAD),
        ("not enough rights to send documents to the chat", Scope.PAYLOAD),
        ("private chat not found", Scope.CHAT),
        ("group is deactivated", Scope.CHAT),
        ("PEER_ID_INVALID", Scope.CHAT),
        ("CHAT_WRITE_FORBIDDEN", Scope.CHAT),
        ("CHANNEL_PRIVATE", Scope.CHAT),
        ("not enough rights to send text messages to the chat", Scope.CHAT),
        ("have no rights to send a message", Scope.CHAT),
        ("group chat was upgraded to a supergroup chat", Scope.CHAT),
    ],
)
def test_a_bad_request_is_about_the_message_or_about_the_chat(
    description: str, scope: Scope
) -> None:
    outcome = outcome_of(Rejected(400, f"Bad Request: {description}"))
    assert isinstance(outcome, Refused)
    assert outcome.scope is scope


def test_a_reason_repeats_no_words_of_the_message_and_no_token() -> None:
    quoting = Rejected(400, 'Bad Request: can\'t parse entities: unsupported tag "secret"')
    leaking = Rejected(400, "Bad Request: wrong 7000000001:AAaa-token_token in request")
    for error in (quoting, leaking):
        outcome = outcome_of(error)
        assert isinstance(outcome, Refused)
        assert "secret" not in outcome.reason
        assert "AAaa" not in outcome.reason


async def test_b43_a_rate_limit_names_its_wait_and_the_same_part_goes_later() -> None:
    async with line() as at:
        at.fake.fail("sendMessage", faults.too_many(37))
        first = await at.send()
        assert isinstance(first, NotSent)
        assert (first.retry_after, first.limited) == (37.0, LimitOf.UNTOLD)
        assert isinstance(await at.send(), Sent)
        assert len(at.fake.messages(CHAT)) == 1


async def test_b45_a_block_parks_this_chat_after_one_call_and_no_other() -> None:
    async with line() as at:
        at.fake.fail("sendMessage", faults.blocked(), chat=CHAT, times=None)
        assert isinstance(await at.send(), Refused)
        assert isinstance(await at.send("hi", private("700100299")), Sent)
        assert len(at.fake.calls_of("sendMessage", CHAT)) == 1


async def test_a_cancelled_send_raises_and_is_not_turned_into_an_outcome() -> None:
    async with line() as at:
        at.fake.fail("sendMessage", faults.hang_after_storing())
        sending = asyncio.ensure_future(at.send())
        await at.fake.wait_for(lambda: at.fake.messages(CHAT))
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
