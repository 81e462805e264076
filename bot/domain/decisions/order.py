"""The order of what was said, which no clock that is set may disturb.

Where a platform tells when a message was written, that counts. All else stands in the order in
which it was recorded here, which ids tell: they only grow. Messages and parts have ids of their
own each; between the two only times tell, and after a clock was set back these begin anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
SortKey = tuple[float, ...]
"""A time in epoch seconds, and further numbers for what is of one time."""


class Recorded(Protocol):
    """A message as it was recorded: `sent_at` is the provider's time, where it tells one, and
    `received_at` ours, both in epoch seconds."""

    @property
    def id(self) -> int: ...
    @property
    def provider_id(self) -> str: ...
    @property
    def sent_at(self) -> float | None: ...
    @property
    def received_at(self) -> float: ...


M = TypeVar("M", bound=Recorded)


def as_written(messages: Iterable[M]) -> Sequence[M]:
    """Messages by the provider's time, within a second by its numbers where it counts its messages.

    One whose time nobody tells stands behind all that were recorded before it.
    """
    recorded = sorted(messages, key=lambda message: message.id)
    if len(recorded) < 2:  # as most turns have it
        return recorded
    keyed: list[tuple[SortKey, M]] = []
    last: SortKey = (0.0, 0)
    for message in recorded:
        if message.sent_at is None:
            written = max((message.received_at, 0), last)
        else:
            written = (message.sent_at, _number(message.provider_id))
        last = max(last, written)
        keyed.append(((*written, message.id), message))
    return [message for _, message in sorted(keyed, key=lambda one: one[0])]


def _number(provider_id: str) -> int:
    return int(provider_id) if provider_id.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A run that ended (epoch seconds), and the id of its answer's first part, if it has one."""

    run: int
    answer: int | None
    ended_at: float


@dataclass(frozen=True, slots=True)
class ByHand:
    """An operator's words: their part's id, and when they were stored, in epoch seconds."""

    part: int
    at: float


def as_answered(
    turns: Iterable[EndedTurn], words: Iterable[ByHand]
) -> Sequence[EndedTurn | ByHand]:
    """Turns and operators' words in the order in which they were stored, as their parts' ids tell.

    A turn without an answer stands behind those that were made before it. Against operators' words
    only its time tells its place.
    """
    by_hand = list(words)
    keyed: list[tuple[SortKey, EndedTurn | ByHand]] = [((one.part, 0, 0), one) for one in by_hand]
    last = 0
    for turn in sorted(turns, key=lambda turn: turn.run):
        if turn.answer is None:
            earlier = (one.part for one in by_hand if one.at < turn.ended_at)
            last = max(last, max(earlier, default=0))
            keyed.append(((last, 1, turn.run), turn))
        else:
            last = max(last, turn.answer)
            keyed.append(((turn.answer, 0, turn.run), turn))
    return [one for _, one in sorted(keyed, key=lambda one: one[0])]


_NO_STEP = 1.0
"""Seconds. By less no clock is set: transactions that wait for each other may differ by it."""


@dataclass(eq=False)
class _Sequence(Generic[T]):
    """The rest of a sequence, by its next member, which is by `back` seconds before the last one
    that was taken, of the time `at`. `followed` are the steps of the clock that are behind it."""

    rest: Iterator[T]
    next: T
    key: SortKey
    followed: int = 0
    at: float = float("-inf")

    @property
    def back(self) -> float:
        return max(0.0, self.at - self.key[0])


def _never(_one: object) -> bool:
    return False


def in_one_order(
    *several: Iterable[T], key: Callable[[T], SortKey], held: Callable[[T], bool] = _never
) -> Iterator[T]:
    """Sequences in one, each in its own order, and beside each other by time; nothing comes while
    it is `held`, which some next member never is.

    A member whose time is before that of its predecessor was recorded after the clock was set back.
    What other sequences still have from before stands before it: nobody knows when the clock was
    set, so this is what came no later than by the same time again.
    """
    sequences = [
        _Sequence(rest, first, key(first)) for rest in map(iter, several) for first in _one(rest)
    ]
    steps, until = 0, float("-inf")
    while sequences:
        free = [s for s in sequences if not held(s.next)]
        begin = [s for s in free if s.back > _NO_STEP and s.followed == steps]
        as_far = max((s.at + s.back for s in begin), default=float("inf"))
        before = [s for s in free if s not in begin and s.key[0] <= as_far]
        first = min(before or begin, key=lambda s: s.key)
        if first in begin:
            steps, until = steps + 1, as_far
        if first.back > _NO_STEP or first.key[0] > until:
            first.followed = steps
        first.at = first.key[0]
        yield first.next
        sequences = [s for s in sequences if s is not first or _goes_on(s, key)]


def _one(rest: Iterator[T]) -> Iterator[T]:
    """The next member, if there is one."""
    yield from itertools.islice(rest, 1)


def _goes_on(sequence: _Sequence[T], key: Callable[[T], SortKey]) -> bool:
    """Look at its next member. False: there is none."""
    for found in _one(sequence.rest):
        sequence.next, sequence.key = found, key(found)
        return True
    return False
