"""Each of Meta's codes: its proof about a send, and the reaction to a status with it."""

from __future__ import annotations

import pytest

from bot.domain.delivery import (
    ChannelDown,
    LateRefusal,
    LimitOf,
    NotSent,
    Outcome,
    Refused,
    Scope,
    Unknown,
)
from channels.whatsapp_cloud.errors import TABLE, outcome_of

_AGAIN, _DOWN, _UNKNOWN = NotSent, ChannelDown, Unknown

PROOFS: dict[type[Outcome] | Scope, tuple[int, ...]] = {
    _UNKNOWN: (1, 2, 131000, 131016, 133004),
    _AGAIN: (131057, 4, 80007, 130429, 131056, 131048),
    _DOWN: (
        *(0, 190, 3, 10, 131005, *range(200, 300)),
        *(33, 133010, 131045, 368, 131031, 131042, 131037, 131064),
    ),
    Scope.WINDOW: (131047, *range(132000, 132017), 132018, 132068, 132069),
    Scope.CHAT: (131026, 130403, 130497, 131030, 131062),
    Scope.PAYLOAD: (
        *(130472, 131049, 131050, 131063, 100, 131008, 131009, 131021, 131051, 135000),
        *(131052, 131053, 137000, 131020, 131041, *range(131200, 131300)),
    ),
}
BY_STATUS: dict[LateRefusal, tuple[int, ...]] = {
    LateRefusal.RESEND_ONCE: (131000, 131016, 131056, 130429),
    LateRefusal.ACCOUNT_DOWN: (190, 10, 368, 131042, 133010),
    LateRefusal.WINDOW: (131047,),
    LateRefusal.PERMANENT_CHAT: (131026, 130403),
    LateRefusal.PERMANENT_PAYLOAD: (131053, 131049, 100),
    LateRefusal.CONFIGURATION: (132001, 131030),
    LateRefusal.UNKNOWN: (999_999,),
}


def answered(status: int, code: int | None, wait: float | None = None, attempt: int = 1) -> Outcome:
    return outcome_of(status, code, wait, attempt, 0.0)


def test_the_table_has_these_codes_and_no_other() -> None:
    known = [code for codes in PROOFS.values() for code in codes]
    assert sorted(known) == sorted(TABLE.rules)


@pytest.mark.parametrize("status", [200, 400, 403, 429, 500])
def test_a_known_code_alone_decides_whatever_the_http_status(status: int) -> None:
    for proof, codes in PROOFS.items():
        for code in codes:
            outcome = answered(status, code)
            if isinstance(proof, Scope):
                assert isinstance(outcome, Refused), code
                assert (outcome.scope, outcome.code) == (proof, str(code))
            else:
                assert isinstance(outcome, proof), code


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, 999_999, Refused),
        (403, 999_999, Refused),
        (500, 999_999, Unknown),
        (502, None, Unknown),
        (302, None, Unknown),
        (408, None, Unknown),
        (429, None, NotSent),
        (401, None, ChannelDown),
        (404, None, ChannelDown),
        (413, None, Refused),
    ],
)
def test_what_nobody_listed_is_judged_by_its_status(
    status: int, code: int | None, kind: type[Outcome]
) -> None:
    assert isinstance(answered(status, code), kind)


@pytest.mark.parametrize(("attempt", "wait"), [(1, 1.0), (2, 4.0), (3, 16.0), (40, 256.0)])
def test_b146_each_refusal_by_the_pair_limit_waits_four_times_as_long(
    attempt: int, wait: float
) -> None:
    outcome = answered(400, 131056, attempt=attempt)
    assert isinstance(outcome, NotSent)
    assert (outcome.retry_after, outcome.limited) == (wait, LimitOf.CHAT)
    later = outcome_of(429, 131056, None, attempt, 0.99)
    assert isinstance(later, NotSent)
    assert later.retry_after is not None
    assert wait <= later.retry_after < wait * 1.3


@pytest.mark.parametrize("code", [130429, 80007, 4, 131048, 131057])
def test_b146_other_limits_slow_the_whole_number(code: int) -> None:
    outcome = answered(400, code)
    assert isinstance(outcome, NotSent)
    assert outcome.limited is LimitOf.ACCOUNT
    assert outcome.retry_after
    told = answered(400, code, wait=120.0)
    assert isinstance(told, NotSent)
    assert told.retry_after == 120.0


def test_a_status_with_a_code_asks_for_its_reaction() -> None:
    for reaction, codes in BY_STATUS.items():
        assert {TABLE.reaction(str(code)) for code in codes} == {reaction}
    assert TABLE.reaction("") is LateRefusal.UNKNOWN


def test_b147_what_takes_a_number_down_says_what_to_do() -> None:
    for code in PROOFS[_DOWN]:
        outcome = answered(401, code)
        assert isinstance(outcome, ChannelDown)
        assert ": " in outcome.reason
