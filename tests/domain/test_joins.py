"""The run that takes a message while it waits, and its wait from then on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.decisions.admission import joins_until, wait_for_more
from bot.domain.decisions.terms import Burst, IntakeTerms
from bot.domain.message import Inbound
from tests.domain.messages import said


def inbound(album: str = "") -> Inbound:
    return replace(said("hello"), album=album)


MERGE = IntakeTerms(quiet=2.0)
EACH = IntakeTerms(burst=Burst.EACH)


@pytest.mark.parametrize(
    ("terms", "album", "album_began", "until"),
    [
        (MERGE, "", None, 110.0),
        (IntakeTerms(), "", None, 106.0),
        (MERGE, "a1", None, 111.0),
        (MERGE, "a1", 103.0, 109.0),
        (EACH, "", None, None),
        (EACH, "a1", None, None),
        (EACH, "a1", 103.0, 109.0),
    ],
)
def test_how_long_a_run_waits_for_more(
    terms: IntakeTerms, album: str, album_began: float | None, until: float | None
) -> None:
    assert joins_until(0, 100.0, inbound(album=album), album_began, 105.0, terms) == until


def test_a_run_that_was_claimed_takes_no_message() -> None:
    assert joins_until(1, 100.0, inbound(), None, 105.0, MERGE) is None


def test_an_album_is_waited_for_even_without_a_quiet_time() -> None:
    assert wait_for_more(inbound(), IntakeTerms()) == 0.0
    assert wait_for_more(inbound(album="a1"), IntakeTerms()) == 1.2
    assert wait_for_more(inbound(album="a1"), MERGE) == 2.0
