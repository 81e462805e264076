"""The decision whether a program may work on a database, by its schema."""

from __future__ import annotations

import pytest

from bot.domain.decisions.schema import Fit, Schema, fit


@pytest.mark.parametrize(
    ("revision", "floor", "expected"),
    [
        ("0003", "0001", Fit.SAME),
        ("0003", "0003", Fit.SAME),
        ("0002", "0001", Fit.BEHIND),
        ("0001", "0001", Fit.BEHIND),
        ("0004", "0001", Fit.AHEAD),
        ("0009", "0003", Fit.AHEAD),
        ("0004", "0004", Fit.BEYOND),
        ("0009", "0004", Fit.BEYOND),
    ],
)
def test_a_program_works_where_nothing_was_taken_away_that_it_knows(
    revision: str, floor: str, expected: Fit
) -> None:
    assert fit(Schema(revision, floor), newest="0003") is expected
