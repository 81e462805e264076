"""The table of endings: every member, and what derives from it."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from bot.domain.ending import (
    Again,
    ByHand,
    Cause,
    Close,
    Ending,
    Note,
    Reaction,
    TurnStatus,
    leading_to,
    status_of,
    worst,
)

E = Ending


@pytest.mark.parametrize("ending", Ending)
def test_every_ending_has_a_whole_rule(ending: Ending) -> None:
    assert Ending(ending.value) is ending
    assert ending.rule.says.endswith(".")
    assert status_of(ending) in (
        TurnStatus.COMPLETED,
        TurnStatus.WITHDRAWN,
        TurnStatus.INTERRUPTED,
    )
    for other in ending.rule.correctable_to:
        assert Ending(other) is not ending


@pytest.mark.parametrize("ending", Ending)
def test_what_is_settled_needs_no_eyes_and_nothing_from_the_person(ending: Ending) -> None:
    settled = ending.rule.reaction is Reaction.NOTHING
    assert ending.needs_eyes is not settled
    if settled:
        assert ending.rule.again is None
        assert ending.rule.note is None
        assert status_of(ending) is not TurnStatus.INTERRUPTED


@pytest.mark.parametrize("ending", Ending)
def test_only_what_arrived_or_was_withdrawn_is_kept_from_being_requeued(ending: Ending) -> None:
    assert bool(ending.rule.not_requeued) is (ending in (E.ANSWERED, E.WITHDRAWN))


def test_nothing_that_was_answered_or_withdrawn_is_corrected_by_hand() -> None:
    to_answered = {e for e in Ending if e.correctable_to(E.ANSWERED)}
    to_cancelled = {e for e in Ending if e.correctable_to(E.CANCELLED)}
    assert to_answered == {e for e in Ending if e.needs_eyes} | {E.CANCELLED}
    assert to_cancelled == {e for e in Ending if e.needs_eyes} - {E.APOLOGISED}
    by_hand = {name for e in Ending for name in e.rule.correctable_to}
    assert by_hand == set(get_args(ByHand))


def test_every_way_on_and_every_note_has_its_endings() -> None:
    assert leading_to(Again.RETRY) == (E.APOLOGISED, E.FAILED)
    assert leading_to(Again.RESEND) == (E.UNCERTAIN,)
    assert {e.rule.note for e in Ending} == {*Note, None}


def test_history_shows_the_answers_that_a_person_may_have() -> None:
    assert [e for e in Ending if e.rule.shown] == [E.ANSWERED, E.UNCERTAIN]


def test_only_a_stopped_run_sends_nothing_more() -> None:
    assert [e for e in Ending if e.stopped] == [E.WITHDRAWN, E.CANCELLED]


def test_the_worst_part_wins_and_of_two_alike_the_first() -> None:
    answered, first = Close(E.ANSWERED, Cause.DELIVERED), Close(E.UNCERTAIN, Cause.UNCONFIRMED, "a")
    second, refused = replace(first, detail="b"), Close(E.UNDELIVERABLE, Cause.REFUSED)
    assert worst([answered, first, second]) is first
    assert worst([answered, refused, first]) is refused


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_is_stored_by_a_plain_value(cause: Cause) -> None:
    assert Cause(cause.value) is cause
    assert cause.value.replace("_", "").isalpha()
    assert Close(E.FAILED, cause).words == cause.says
    assert Close(E.FAILED, cause, "more").words == "more"
