"""The whole error table: the proof of each code at once, and its reaction later."""

from __future__ import annotations

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
from bot.domain.delivery import (
    LateRefusal as React,
)
from channels.whatsapp.errors import TABLE as ERRORS
from channels.whatsapp.errors import outcome_of_code
from channels.whatsapp_common.errors import retry_after_seconds

DOWN, CHAT, CONSENT, WINDOW = "down", "chat", "consent", "window"
PAYLOAD, AGAIN, UNKNOWN = "payload", "again", "unknown"

TABLE: dict[str, tuple[React, tuple[int, ...]]] = {
    DOWN: (
        React.ACCOUNT_DOWN,
        (
            *(20003, 20005, 20006, 20404, 21212, 21603, 21606, 21609, 21910),
            *(30002, 63001, 63007, 63008, 63051),
        ),
    ),
    CHAT: (
        React.PERMANENT_CHAT,
        (21211, 21217, 21604, 21612, 21614, 63003, 63014, 63015, 63024, 63033),
    ),
    PAYLOAD: (
        React.PERMANENT_PAYLOAD,
        (
            *(11751, 12300, 21617, 21620, 21623, 63005, 63006, 63013),
            *(63019, 63021, 63030, 63032, 63034, 63049),
        ),
    ),
    AGAIN: (React.RESEND_ONCE, (20429, 21611, 30001, 63017, 63018)),
    UNKNOWN: (React.RESEND_ONCE, (30008, 30410, 63009, 63010, 63012)),
}
SPECIAL: dict[int, tuple[str, React]] = {
    20500: (UNKNOWN, React.UNKNOWN),
    20503: (UNKNOWN, React.UNKNOWN),
    21408: (CHAT, React.CONFIGURATION),
    21610: (CONSENT, React.OPTED_OUT),
    63016: (WINDOW, React.WINDOW),
    63037: (UNKNOWN, React.NONE),
    63038: (AGAIN, React.RESEND_ONCE),
} | dict.fromkeys(
    (21655, 21656, 63027, 63028, 63040, 63041, 63042, 63062), (WINDOW, React.CONFIGURATION)
)
EVERY = SPECIAL | {
    code: (kind, reaction) for kind, (reaction, codes) in TABLE.items() for code in codes
}


def kind(outcome: Outcome) -> str:
    match outcome:
        case NotSent():
            return AGAIN
        case ChannelDown():
            return DOWN
        case Unknown():
            return UNKNOWN
        case Refused(scope):
            return scope.value
        case Sent():
            return "sent"


def test_the_table_has_every_code_of_the_facts_and_no_other() -> None:
    assert ERRORS.rules.keys() == EVERY.keys()


@pytest.mark.parametrize("code", EVERY)
def test_what_a_code_proves_at_once(code: int) -> None:
    outcome = outcome_of_code(400, code)
    assert kind(outcome) == EVERY[code][0]
    assert getattr(outcome, "code", "") == str(code)


@pytest.mark.parametrize("code", EVERY)
def test_what_a_code_asks_for_when_it_comes_with_a_status(code: int) -> None:
    assert ERRORS.reaction(str(code)) is EVERY[code][1]
    assert str(code) in ERRORS.explain(str(code))


@pytest.mark.parametrize("code", ["", "99999", "63999", "abc", "\u0666"])
def test_an_unknown_code_is_failed_and_listed_and_never_a_reason_to_send_again(code: str) -> None:
    assert ERRORS.reaction(code) is React.UNKNOWN
    assert code in ERRORS.explain(code)


def test_an_unknown_code_at_once_refuses_this_message_only() -> None:
    assert outcome_of_code(400, 99_999) == Refused(
        Scope.PAYLOAD, "Twilio refused it with code 99999", "99999"
    )


@pytest.mark.parametrize("code", [20500, 20503, None, 63016, 21610])
@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_server_error_may_have_been_sent_whatever_its_code(status: int, code: int) -> None:
    assert kind(outcome_of_code(status, code)) == UNKNOWN


@pytest.mark.parametrize("status", [200, 302, 408])
def test_an_answer_that_proves_nothing_is_unknown(status: int) -> None:
    assert kind(outcome_of_code(status, None)) == UNKNOWN


@pytest.mark.parametrize("code", [20429, 21611, 63018, 63038, 63016, None])
def test_429_was_never_processed(code: int | None) -> None:
    outcome = outcome_of_code(429, code, 7.0)
    assert isinstance(outcome, NotSent)
    assert (outcome.limited is not None, outcome.retry_after) == (True, 7.0)


def test_a_limit_without_a_named_wait_has_its_codes_or_a_growing_one() -> None:
    waits = [outcome_of_code(429, code) for code in (None, 20429, 63018, 63038)]
    assert [w.retry_after for w in waits if isinstance(w, NotSent)] == [None, None, 30.0, 3600.0]


def test_a_limit_of_the_whole_account_says_so() -> None:
    limits = [outcome_of_code(429, code) for code in (None, 21611, 63017, 20429, 63018, 63038)]
    said = [LimitOf.UNTOLD] * 3 + [LimitOf.ACCOUNT] * 3
    assert [m.limited for m in limits if isinstance(m, NotSent)] == said


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_account_stops_the_channel_even_without_a_code(status: int) -> None:
    assert kind(outcome_of_code(status, None)) == DOWN


def test_a_re_send_waits() -> None:
    for code, (_, reaction) in EVERY.items():
        if reaction is React.RESEND_ONCE:
            assert ERRORS.resend_after(str(code)) >= 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("5", 5.0),
        (" 37 ", 37.0),
        ("0", 0.0),
        ("999999999999", 86_400.0),
        ("Fri, 15 Jan 2027 08:01:00 GMT", 60.0),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
        ("", None),
        ("-5", None),
        ("soon", None),
        ("1.5e3x", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str, seconds: float | None) -> None:
    assert retry_after_seconds(header, 1_800_000_000.0) == seconds


def test_no_reason_carries_digits_that_could_be_a_number() -> None:
    for code, rule in ERRORS.rules.items():
        digits = [run for run in rule.why.split() if run.isdigit()]
        assert not any(len(run) > 4 for run in digits), code
