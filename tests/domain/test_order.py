"""The order of what was said, while clocks are set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.decisions.order import ByHand, EndedTurn, as_answered, as_written, in_one_order

HOUR = 3600.0


@dataclass(frozen=True)
class Message:
    """A message that was recorded at a second, with the provider's own time if that tells one."""

    id: int
    received_at: float
    sent_at: float | None = None
    provider_id: str = ""


@pytest.mark.parametrize(
    ("recorded", "written"),
    [
        pytest.param([(10.0, 3.0), (11.0, 1.0), (12.0, 2.0)], [2, 3, 1], id="the platform's times"),
        pytest.param([(10.0, None), (11.0, None)], [1, 2], id="as they came"),
        pytest.param([(10.0, None), (2.0, None), (3.0, None)], [1, 2, 3], id="set back"),
        pytest.param([(10.0, None), (99.0, None), (11.0, None)], [1, 2, 3], id="forward and back"),
        pytest.param([(10.0, 9.0), (2.0, None), (3.0, 9.5)], [1, 2, 3], id="one tells no time"),
        pytest.param([(10.0, None), (11.0, 8.0)], [2, 1], id="found in the platform's list later"),
        pytest.param([(10.0, 15.0), (11.0, None)], [1, 2], id="the platform's clock is ahead"),
    ],
)
def test_messages_stand_as_they_were_written(
    recorded: Sequence[tuple[float, float | None]], written: Sequence[int]
) -> None:
    messages = [Message(number, *times) for number, times in enumerate(recorded, 1)]
    assert [one.id for one in as_written(reversed(messages))] == written


def test_what_a_platform_counts_within_a_second_stands_as_it_counts() -> None:
    second = [Message(1, 10.0, 9.0, "12"), Message(2, 10.1, 9.0, "11"), Message(3, 9.0, None, "7")]
    assert [one.provider_id for one in as_written(second)] == ["11", "12", "7"]


@pytest.mark.parametrize(
    ("turns", "by_hand", "order"),
    [
        pytest.param([(1, 10, 50.0), (2, 20, 5.0)], [], "1 2", id="set back"),
        pytest.param([(1, 10, 50.0), (2, 30, 70.0), (3, 20, 60.0)], [], "1 3 2", id="late in turn"),
        pytest.param([(1, 10, 50.0), (2, None, 5.0), (3, 20, 6.0)], [], "1 2 3", id="no answer"),
        pytest.param([(1, 10, 50.0), (2, 30, 5.0)], [(20, 51.0)], "1 h20 2", id="words between"),
        pytest.param([(1, 10, 50.0), (2, None, 60.0)], [(20, 55.0)], "1 h20 2", id="words before"),
        pytest.param([(1, 10, 50.0), (2, None, 54.0)], [(20, 55.0)], "1 2 h20", id="words behind"),
        pytest.param([(1, None, 55.0)], [(20, 55.0)], "1 h20", id="words that end a turn"),
        pytest.param([], [(8, 9.0), (7, 11.0)], "h7 h8", id="words alone"),
    ],
)
def test_turns_stand_as_they_were_answered(
    turns: Sequence[tuple[int, int | None, float]],
    by_hand: Sequence[tuple[int, float]],
    order: str,
) -> None:
    found = as_answered((EndedTurn(*t) for t in reversed(turns)), (ByHand(*w) for w in by_hand))
    told = [f"h{one.part}" if isinstance(one, ByHand) else str(one.run) for one in found]
    assert told == order.split()


Line = tuple[float, int]
"""A time, and how many lines came before it."""

_GAPS = st.lists(st.floats(1.5, HOUR / 3), min_size=2, max_size=40)


def _dialogue(gaps: Sequence[float], steps: dict[int, float]) -> tuple[list[Line], list[Line]]:
    """The messages and answers of a chat in turn, while the clock is set before some lines."""
    lines, now, wrong_by = [], 1e9, 0.0
    for number, gap in enumerate(gaps):
        now, wrong_by = now + gap, steps.get(number, wrong_by)
        lines.append((now + wrong_by, number))
    return lines[::2], lines[1::2]


def _told(heard: Sequence[Line], said: Sequence[Line]) -> list[int]:
    """The lines in one order; each answer is held until its message came."""
    told: list[int] = []
    for _, number in in_one_order(
        heard,
        said,
        key=lambda line: (line[0],),
        held=lambda line: line[1] % 2 == 1 and line[1] - 1 not in told,
    ):
        told.append(number)
    return told


@given(_GAPS, st.integers(1, 39), st.sampled_from([-24 * HOUR, -HOUR, HOUR]))
def test_a_dialogue_keeps_its_order_when_the_clock_is_set(
    gaps: Sequence[float], number: int, step: float
) -> None:
    heard, said = _dialogue(gaps, {number: step})
    assert _told(heard, said) == list(range(len(gaps)))


@given(_GAPS, st.integers(1, 20), st.integers(2, 20))
def test_a_dialogue_keeps_its_order_when_the_clock_is_set_forward_and_back(
    gaps: Sequence[float], number: int, later: int
) -> None:
    heard, said = _dialogue(gaps, {number: 24 * HOUR, number + later: 0.0})
    assert _told(heard, said) == list(range(len(gaps)))


@given(st.lists(st.tuples(st.floats(0, 1e10), st.integers(0, 2)), max_size=40))
def test_nothing_is_lost_and_each_sequence_keeps_its_order(
    given_: Sequence[tuple[float, int]],
) -> None:
    each = [[(at, n) for n, (at, of) in enumerate(given_) if of == which] for which in range(3)]
    told = list(in_one_order(*each, key=lambda line: (line[0],)))
    assert sorted(told) == sorted((at, n) for n, (at, _) in enumerate(given_))
    for sequence in each:
        assert [line for line in told if line in sequence] == sequence


@given(st.lists(st.lists(st.floats(0, 1e10)).map(sorted), max_size=3))
def test_where_no_clock_was_set_all_stands_by_its_time(sequences: Sequence[list[float]]) -> None:
    told = list(in_one_order(*sequences, key=lambda at: (at,)))
    assert told == sorted(at for sequence in sequences for at in sequence)
