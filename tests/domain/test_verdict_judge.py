"""Verdicts on a run, each at the bounds between them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.decisions.retry import RETRY
from bot.domain.decisions.verdict import (
    Apologise,
    Deliver,
    Evidence,
    PartFacts,
    Policy,
    Think,
    judge,
)
from bot.domain.delivery import PartState, Scope
from bot.domain.ending import Cause, Close, Ending

NOW = 1_000_000.0
FRESH = Evidence(
    now=NOW,
    failures=0,
    deaths=0,
    deadline_at=NOW + 900,
    last_message_at=NOW,
    window_opened_at=NOW,
    reply_stored=False,
)
TELEGRAM = Policy()
WHATSAPP = Policy(free_text_window=86_400.0 - 60, looks=(2.0, 10.0), ordered=False)
CLOSED = NOW - (86_400.0 - 60)
"""The time at which the person last wrote, if the window has just closed."""
BLOCKED = Close(Ending.UNDELIVERABLE, Cause.UNREACHABLE, "blocked")
TOO_OLD = NOW - 86_400.001


def part(state: PartState, number: int = 1, attempts: int = 1) -> PartFacts:
    scope = Scope.PAYLOAD if state is PartState.REFUSED else None
    return PartFacts(id=number, number=number, state=state, attempts=attempts, scope=scope)


PENDING = part(PartState.PENDING, attempts=0)
SENDING = part(PartState.SENDING)
SENT = part(PartState.SENT)
UNCERTAIN = part(PartState.UNCERTAIN)


def test_a_new_run_is_thought_about() -> None:
    assert judge(FRESH, TELEGRAM) == Think(suspect=False)


@pytest.mark.parametrize(
    ("deaths", "suspect"), [(0, False), (1, False), (2, True), (3, True), (99, True)]
)
def test_two_deaths_of_the_holder_make_a_suspect(deaths: int, suspect: bool) -> None:
    assert judge(replace(FRESH, deaths=deaths), TELEGRAM) == Think(suspect)


@pytest.mark.parametrize("failures", range(RETRY.max_failures))
def test_fewer_failures_than_the_most_are_tried_again(failures: int) -> None:
    assert judge(replace(FRESH, failures=failures), TELEGRAM) == Think(suspect=False)


@pytest.mark.parametrize("failures", [RETRY.max_failures, RETRY.max_failures + 1])
def test_the_most_failures_are_apologised_for(failures: int) -> None:
    verdict = judge(replace(FRESH, failures=failures), TELEGRAM)
    assert verdict == Apologise(Cause.FAILURES, f"{failures} failures without progress")


@pytest.mark.parametrize(
    ("deadline", "over"),
    [(None, False), (NOW + 0.001, False), (NOW, True), (NOW - 1, True)],
)
def test_the_deadline_ends_the_agents_time(deadline: float | None, over: bool) -> None:
    verdict = judge(replace(FRESH, deadline_at=deadline), TELEGRAM)
    assert verdict == (Apologise(Cause.DEADLINE) if over else Think(suspect=False))


def test_the_deadline_bounds_the_agent_only() -> None:
    stored = replace(FRESH, deadline_at=NOW - 1, failures=9, reply_stored=True, parts=(PENDING,))
    assert judge(stored, TELEGRAM) == Deliver()


@pytest.mark.parametrize("apology", [False, True])
@pytest.mark.parametrize("state", list(PartState))
@pytest.mark.parametrize("policy", [TELEGRAM, WHATSAPP], ids=["telegram", "whatsapp"])
def test_what_is_stored_is_never_thought_about_again(
    apology: bool, state: PartState, policy: Policy
) -> None:
    known = replace(FRESH, deaths=9, failures=2, parts=(part(state),))
    stored = replace(known, reply_stored=not apology, apology_stored=apology)
    assert judge(stored, policy) == Deliver()


@pytest.mark.parametrize("parts", [(), (PENDING,), (SENDING,), (UNCERTAIN, PENDING)])
def test_what_a_human_answered_is_closed_before_anything_else(
    parts: tuple[PartFacts, ...],
) -> None:
    answered = replace(
        FRESH,
        human_answered=True,
        failures=9,
        deadline_at=NOW - 1,
        last_message_at=TOO_OLD,
        silenced=BLOCKED,
        reply_stored=bool(parts),
        parts=parts,
    )
    verdict = judge(answered, WHATSAPP)
    assert isinstance(verdict, Close)
    assert verdict.ending is Ending.ANSWERED


@pytest.mark.parametrize("parts", [(), (PENDING,), (SENT, part(PartState.PENDING, 2))])
def test_a_parked_chat_gets_nothing_that_was_not_begun(parts: tuple[PartFacts, ...]) -> None:
    parked = replace(FRESH, silenced=BLOCKED, reply_stored=bool(parts), parts=parts)
    assert judge(parked, TELEGRAM) == BLOCKED


@pytest.mark.parametrize(
    ("opened", "closed"), [(CLOSED + 0.001, False), (CLOSED, True), (CLOSED - 1, True)]
)
def test_a_closed_window_wins_over_everything_that_would_send(opened: float, closed: bool) -> None:
    evidence = replace(FRESH, window_opened_at=opened, last_message_at=opened)
    verdict = judge(evidence, WHATSAPP)
    assert verdict == (
        Close(Ending.UNDELIVERABLE, Cause.WINDOW_CLOSED) if closed else Think(suspect=False)
    )
    assert judge(evidence, TELEGRAM) == Think(suspect=False)


def test_a_closed_window_wins_over_age_and_over_failures() -> None:
    late = replace(
        FRESH, window_opened_at=TOO_OLD, last_message_at=TOO_OLD, failures=RETRY.max_failures
    )
    assert judge(late, WHATSAPP) == Close(Ending.UNDELIVERABLE, Cause.WINDOW_CLOSED)


@pytest.mark.parametrize("parts", [(SENT,), (UNCERTAIN,), (SENDING,), (SENT, UNCERTAIN)])
def test_what_was_begun_is_followed_to_its_end_whatever_the_chat_forbids_now(
    parts: tuple[PartFacts, ...],
) -> None:
    later = replace(
        FRESH,
        silenced=BLOCKED,
        window_opened_at=TOO_OLD,
        last_message_at=TOO_OLD,
        reply_stored=True,
        parts=parts,
    )
    assert judge(later, WHATSAPP) == Deliver()


@pytest.mark.parametrize(
    ("age", "expired"), [(86_399.0, False), (86_400.0, False), (86_400.001, True)]
)
def test_a_message_that_is_too_old_expires_unanswered(age: float, expired: bool) -> None:
    verdict = judge(replace(FRESH, last_message_at=NOW - age), TELEGRAM)
    if expired:
        assert isinstance(verdict, Close)
        assert verdict.ending is Ending.EXPIRED
    else:
        assert verdict == Think(suspect=False)


@pytest.mark.parametrize(
    ("parts", "ending"),
    [
        ((PENDING,), Ending.EXPIRED),
        ((part(PartState.PENDING, attempts=7),), Ending.EXPIRED),
        ((SENT, part(PartState.PENDING, 2)), Ending.UNDELIVERABLE),
        ((UNCERTAIN, part(PartState.PENDING, 2)), Ending.UNDELIVERABLE),
    ],
    ids=["never tried", "tried, proven not to have left", "half of it arrived", "half may have"],
)
def test_a_stored_reply_does_not_wait_for_ever(
    parts: tuple[PartFacts, ...], ending: Ending
) -> None:
    stored = replace(FRESH, last_message_at=TOO_OLD, reply_stored=True, parts=parts)
    verdict = judge(stored, TELEGRAM)
    assert isinstance(verdict, Close)
    assert verdict.ending is ending


@pytest.mark.parametrize(
    "spent",
    [
        replace(FRESH, failures=RETRY.max_failures),
        replace(FRESH, deadline_at=NOW),
    ],
)
def test_nobody_apologises_where_a_person_was_asked_for(spent: Evidence) -> None:
    assert isinstance(judge(spent, TELEGRAM), Apologise)
    left = judge(replace(spent, handed_over=True), TELEGRAM)
    assert isinstance(left, Close)
    assert left.ending is Ending.SILENT
    assert left.words.startswith("left to a person: ")
