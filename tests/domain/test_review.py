"""Endings recomputed when more is known of a finished run's parts."""

from __future__ import annotations

import pytest

from bot.domain.decisions.verdict import PartFacts, review
from bot.domain.delivery import PartState
from bot.domain.ending import Ending

SENT, READ = PartState.SENT, PartState.READ
PENDING, SENDING = PartState.PENDING, PartState.SENDING
REFUSED, UNCERTAIN = PartState.REFUSED, PartState.UNCERTAIN
DROPPED = PartState.DROPPED


def parts(*states: PartState) -> list[PartFacts]:
    return [PartFacts(n, n, state, error=f"error {n}") for n, state in enumerate(states, 1)]


@pytest.mark.parametrize(
    ("before", "states", "after"),
    [
        (Ending.UNCERTAIN, (SENT, READ), Ending.ANSWERED),
        (Ending.UNDELIVERABLE, (SENT, READ), Ending.ANSWERED),
        (Ending.ANSWERED, (SENT, READ), None),
        (Ending.ANSWERED, (SENT, REFUSED), Ending.UNDELIVERABLE),
        (Ending.UNCERTAIN, (UNCERTAIN, REFUSED), Ending.UNDELIVERABLE),
        (Ending.UNDELIVERABLE, (SENT, REFUSED), None),
        (Ending.ANSWERED, (SENT, PENDING), Ending.UNCERTAIN),
        (Ending.ANSWERED, (SENDING,), Ending.UNCERTAIN),
        (Ending.UNCERTAIN, (SENT, PENDING), None),
        (Ending.UNCERTAIN, (SENT, UNCERTAIN), None),
        (Ending.UNDELIVERABLE, (SENT, UNCERTAIN), Ending.UNCERTAIN),
        (Ending.ANSWERED, (SENT, UNCERTAIN), None),
        (Ending.UNCERTAIN, (SENT, DROPPED), None),
        (Ending.APOLOGISED, (REFUSED,), Ending.FAILED),
        (Ending.APOLOGISED, (SENT,), None),
        (Ending.FAILED, (SENT,), Ending.APOLOGISED),
        (Ending.FAILED, (REFUSED,), None),
        (Ending.UNDELIVERABLE, (), None),
    ],
)
def test_an_ending_follows_its_parts(
    before: Ending, states: tuple[PartState, ...], after: Ending | None
) -> None:
    fits = review(before, parts(*states))
    assert (None if fits is None else fits.ending) is after


@pytest.mark.parametrize(
    "ending", [Ending.WITHDRAWN, Ending.CANCELLED, Ending.EXPIRED, Ending.SILENT]
)
@pytest.mark.parametrize("state", list(PartState))
def test_an_end_on_purpose_stays(ending: Ending, state: PartState) -> None:
    assert review(ending, parts(state)) is None


def test_the_reason_is_the_parts_own() -> None:
    fits = review(Ending.ANSWERED, parts(SENT, REFUSED))
    assert fits is not None
    assert fits.detail == "error 2"
