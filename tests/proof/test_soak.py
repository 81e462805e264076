"""A soak finds what grows, and calls nothing flat that does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from benchmarks.proof.soak import Look, judge_count, judge_curve, judge_rows, pace, slope


def points(value: Callable[[int], float]) -> Sequence[tuple[float, float]]:
    """An hour of looks, one a minute."""
    return [(60.0 * minute, value(minute)) for minute in range(61)]


def test_one_outlier_moves_no_slope() -> None:
    assert slope(points(lambda minute: 900.0 if minute == 30 else 100.0)) == 0.0


@pytest.mark.parametrize(
    ("value", "flat"),
    [
        (lambda minute: 100.0, True),
        (lambda minute: 100.0 + minute % 7, True),
        (lambda minute: min(100.0, 10.0 * minute), True),
        (lambda minute: 100.0 + minute / 5, False),
        (lambda minute: 100.0 - minute / 5, True),
    ],
    ids=["still", "breathing", "warming up", "leaking", "shrinking"],
)
def test_memory_is_flat_or_grows(value: Callable[[int], float], flat: bool) -> None:
    assert judge_curve("memory", points(value), 0.05).flat is flat


@pytest.mark.parametrize(("each", "flat"), [(0, True), (60, True), (12, False)])
def test_a_handle_that_is_lost_every_few_minutes_grows(each: int, flat: bool) -> None:
    def handles(minute: int) -> float:
        return 20.0 + (minute // each if each else 0)

    assert judge_count("handles", points(handles)).flat is flat


def test_a_table_that_makes_more_rows_a_message_as_time_goes_on_grows() -> None:
    looks = [
        Look(60.0 * m, [], [], [], [], {"runs": 600 * m, "leak": 10 * m * m}, 0, 600 * m)
        for m in range(61)
    ]
    assert {j.name: j.flat for j in judge_rows(looks)} == {
        "rows a message, runs": True,
        "rows a message, leak": False,
    }


def test_what_is_possible_is_the_pace_between_the_first_and_the_last_few() -> None:
    slow_start = [(float(second), 0) for second in range(5)]
    steady = [(5.0 + second, 20 * second) for second in range(50)]
    long_tail = [(55.0 + 30 * n, 991 + n) for n in range(10)]
    assert pace([*slow_start, *steady, *long_tail], 1000) == 20.0


def test_a_soak_without_answers_names_no_pace() -> None:
    with pytest.raises(ValueError, match="of 1000 messages too few"):
        pace([(1.0, 0), (2.0, 40)], 1000)
