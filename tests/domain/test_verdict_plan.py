"""The next part of a reply: every move, at the bounds between them."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.decisions.verdict import (
    Doubt,
    LookUp,
    Move,
    PartFacts,
    Policy,
    Resend,
    SendPart,
    UncertainDelivery,
    Unheard,
    Wait,
    plan,
)
from bot.domain.delivery import ARRIVED, PartState, Scope
from bot.domain.ending import Cause, Close, Ending

NOW = 1_000_000.0
REFUSED = Close(Ending.UNDELIVERABLE, Cause.REFUSED, "refused")
TELEGRAM = Policy()
HOLD = Policy(uncertain=UncertainDelivery.HOLD)
RESEND = Policy(uncertain=UncertainDelivery.RESEND)
WHATSAPP = Policy(looks=(2.0, 10.0, 30.0), ordered=False)


def part(number: int, state: PartState, **facts: object) -> PartFacts:
    return replace(PartFacts(number * 10, number, state), **facts)  # type: ignore[arg-type]


def sent(number: int) -> PartFacts:
    return part(number, PartState.SENT, attempts=1, started_at=NOW - 60)


def pending(number: int, **facts: object) -> PartFacts:
    return part(number, PartState.PENDING, **facts)


def uncertain(number: int, **facts: object) -> PartFacts:
    facts = {"attempts": 1, "started_at": NOW, "error": "no answer"} | facts
    return part(number, PartState.UNCERTAIN, **facts)


def refused(number: int, scope: Scope) -> PartFacts:
    return part(number, PartState.REFUSED, attempts=1, scope=scope, error="refused")


def dropped(number: int) -> PartFacts:
    return part(number, PartState.DROPPED)


def test_parts_go_out_in_their_order_whatever_order_they_come_in() -> None:
    assert plan([pending(2), pending(1)], NOW, TELEGRAM) == SendPart(pending(1))
    assert plan([pending(2), sent(1)], NOW, TELEGRAM) == SendPart(pending(2))


@pytest.mark.parametrize("state", sorted(ARRIVED))
def test_a_part_with_a_receipt_is_never_sent_again(state: PartState) -> None:
    assert plan([part(1, state)], NOW, TELEGRAM) == Close(Ending.ANSWERED, Cause.DELIVERED)


def test_a_part_left_in_sending_is_doubted_before_anything_else_happens() -> None:
    sending = part(1, PartState.SENDING, attempts=1)
    for policy in (TELEGRAM, WHATSAPP, RESEND):
        assert plan([sending, pending(2)], NOW, policy) == Doubt(sending)


@pytest.mark.parametrize("policy", [TELEGRAM, HOLD], ids=["ask", "hold"])
def test_where_the_provider_cannot_tell_the_next_parts_go_out_at_once(policy: Policy) -> None:
    assert plan([uncertain(1), pending(2)], NOW, policy) == SendPart(pending(2))
    finish = plan([uncertain(1), sent(2)], NOW, policy)
    assert finish == Close(Ending.UNCERTAIN, Cause.UNCONFIRMED, "no answer")


def test_resend_sends_an_uncertain_part_once_more_and_only_once() -> None:
    assert plan([uncertain(1), pending(2)], NOW, RESEND) == Resend(uncertain(1))
    again = uncertain(1, resends=1)
    assert plan([again, pending(2)], NOW, RESEND) == SendPart(pending(2))
    assert plan([again], NOW, RESEND) == Close(Ending.UNCERTAIN, Cause.UNCONFIRMED, "no answer")


@pytest.mark.parametrize(
    ("looks", "age", "due"),
    [(0, 1.999, False), (0, 2.0, True), (1, 9.9, False), (1, 10.0, True), (2, 30.0, True)],
)
def test_the_provider_is_asked_at_the_times_of_its_looks(looks: int, age: float, due: bool) -> None:
    doubted = uncertain(1, looks=looks, started_at=NOW - age)
    move = plan([doubted, pending(2)], NOW, WHATSAPP)
    if due:
        assert move == LookUp(doubted)
    else:
        assert isinstance(move, Wait)
        assert move.until == doubted.started_at + WHATSAPP.looks[looks]
        assert move.awaited is None


WITNESSED = Policy(witness_wait=120.0)


@pytest.mark.parametrize(
    ("looks", "age", "due"), [(0, 19.9, False), (0, 20.0, True), (5, 119.0, True)]
)
def test_where_only_a_status_tells_it_is_waited_for_step_by_step(
    looks: int, age: float, due: bool
) -> None:
    doubted = uncertain(1, looks=looks, started_at=NOW - age)
    move = plan([doubted, pending(2)], NOW, WITNESSED)
    assert move == Unheard(doubted) if due else isinstance(move, Wait)


def test_a_step_of_the_wait_begins_where_the_last_one_was_counted() -> None:
    after_an_outage = uncertain(1, looks=1, started_at=NOW - 3600, not_before=NOW + 20.0)
    move = plan([after_an_outage], NOW, WITNESSED)
    assert isinstance(move, Wait)
    assert move.until == NOW + 20.0


def test_what_no_status_settled_in_time_stays_in_doubt_and_is_not_sent_again() -> None:
    unheard = uncertain(1, looks=6, started_at=NOW - 130)
    assert plan([unheard], NOW, WITNESSED) == Close(
        Ending.UNCERTAIN, Cause.UNCONFIRMED, "no answer"
    )
    assert plan([unheard, pending(2)], NOW, WITNESSED) == SendPart(pending(2))


def test_after_the_last_look_the_part_is_sent_once_more_and_only_once() -> None:
    seen = uncertain(1, looks=3, started_at=NOW - 31)
    assert plan([seen, pending(2)], NOW, WHATSAPP) == Resend(seen)
    twice = replace(seen, resends=1)
    assert plan([twice], NOW, WHATSAPP) == Close(Ending.UNCERTAIN, Cause.UNCONFIRMED, "no answer")
    assert plan([twice, pending(2)], NOW, WHATSAPP) == SendPart(pending(2))


@pytest.mark.parametrize(
    ("age", "confirmed", "waits"),
    [(0.0, False, True), (29.999, False, True), (30.0, False, False), (0.0, True, False)],
)
def test_where_parts_could_swap_the_next_waits_for_a_word_on_the_one_before(
    age: float, confirmed: bool, waits: bool
) -> None:
    before = part(1, PartState.SENT, attempts=1, started_at=NOW - age, confirmed=confirmed)
    move = plan([before, pending(2)], NOW, WHATSAPP)
    if waits:
        assert isinstance(move, Wait)
        assert move.awaited == before.id
        assert move.until == before.started_at + 30
    else:
        assert move == SendPart(pending(2))
    assert plan([before, pending(2)], NOW, TELEGRAM) == SendPart(pending(2))


@pytest.mark.parametrize(("due", "waits"), [(NOW, False), (NOW + 0.001, True)])
def test_a_part_waits_for_its_due_time_and_keeps_the_later_ones_back(
    due: float, waits: bool
) -> None:
    later = pending(1, not_before=due, attempts=1, error="429")
    move = plan([later, pending(2)], NOW, TELEGRAM)
    assert move == (Wait(due, "429") if waits else SendPart(later))


def test_a_refused_payload_does_not_stop_the_other_parts() -> None:
    bad = refused(1, Scope.PAYLOAD)
    assert plan([bad, pending(2)], NOW, TELEGRAM) == SendPart(pending(2))
    assert plan([bad, sent(2)], NOW, TELEGRAM) == REFUSED


@pytest.mark.parametrize(
    ("scope", "cause"),
    [
        (Scope.CHAT, Cause.UNREACHABLE),
        (Scope.WINDOW, Cause.WINDOW_CLOSED),
        (Scope.CONSENT, Cause.OPTED_OUT),
    ],
)
def test_a_refusal_of_the_chat_ends_the_run_before_what_was_not_sent(
    scope: Scope, cause: Cause
) -> None:
    move = plan([sent(1), refused(2, scope), pending(3), pending(4)], NOW, TELEGRAM)
    assert move == Close(Ending.UNDELIVERABLE, cause, "refused")


@pytest.mark.parametrize(
    ("parts", "ending"),
    [
        ([sent(1), sent(2)], Ending.ANSWERED),
        ([sent(1), uncertain(2)], Ending.UNCERTAIN),
        ([uncertain(1), sent(2)], Ending.UNCERTAIN),
        ([uncertain(1), refused(2, Scope.PAYLOAD)], Ending.UNDELIVERABLE),
        ([refused(1, Scope.PAYLOAD), uncertain(2), sent(3)], Ending.UNDELIVERABLE),
        ([sent(1), dropped(2)], Ending.ANSWERED),
        ([], Ending.SILENT),
        ([dropped(1)], Ending.SILENT),
    ],
)
def test_the_worst_part_decides_how_the_run_ends(parts: list[PartFacts], ending: Ending) -> None:
    move = plan(parts, NOW, TELEGRAM)
    assert isinstance(move, Close)
    assert move.ending is ending


facts = st.builds(
    PartFacts,
    id=st.integers(1, 99),
    number=st.integers(1, 9),
    state=st.sampled_from(PartState),
    attempts=st.integers(0, 3),
    resends=st.integers(0, 2),
    looks=st.integers(0, 4),
    not_before=st.sampled_from([0.0, NOW - 1, NOW, NOW + 5]),
    started_at=st.sampled_from([0.0, NOW - 40, NOW - 5, NOW]),
    confirmed=st.booleans(),
    scope=st.sampled_from(Scope),
    error=st.just("why"),
)


@given(
    parts=st.lists(facts, max_size=5, unique_by=(lambda p: p.id, lambda p: p.number)),
    policy=st.sampled_from([TELEGRAM, HOLD, RESEND, WHATSAPP, WITNESSED]),
)
def test_whatever_the_parts_no_move_touches_one_that_arrived(
    parts: list[PartFacts], policy: Policy
) -> None:
    move: Move = plan(parts, NOW, policy)
    match move:
        case SendPart(chosen):
            assert chosen.state is PartState.PENDING
        case LookUp(chosen) | Unheard(chosen) | Resend(chosen):
            assert chosen.state is PartState.UNCERTAIN
        case Doubt(chosen):
            assert chosen.state is PartState.SENDING
        case Wait(until):
            assert until > NOW
        case Close():
            pass
        case other:
            assert_never(other)
    if not isinstance(move, Wait | Close):
        before = [p for p in parts if p.number < move.part.number]
        assert not any(p.state in (PartState.PENDING, PartState.SENDING) for p in before)
