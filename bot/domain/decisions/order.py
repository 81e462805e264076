"""The order of messages and answers, which holds although somebody may set our clock.

If the platform tells when a message was written, that time counts. Everything else is ordered as it
was recorded here, by ids, which only grow. Messages and parts are numbered separately, so a message
and a part can only be ordered by time, and those times repeat after the clock was set back.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
SortKey = tuple[float, ...]
"""A time in epoch seconds, and further numbers that order members of the same time."""


class Recorded(Protocol):
    """A message as it was recorded. `sent_at` is the provider's time, if it tells one, and
    `received_at` is our own; both in epoch seconds."""

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
    """Messages by the provider's time, and within a second by the provider's numbers, if it counts
    messages. A message without a provider's time comes after all that were recorded before it.
    """
    recorded = sorted(messages, key=lambda message: message.id)
    if len(recorded) < 2:  # most turns have one
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
    """A run that ended at `ended_at` (epoch seconds); `answer` is the id of the first part of its
    answer, if it has one."""

    run: int
    answer: int | None
    ended_at: float


@dataclass(frozen=True, slots=True)
class ByHand:
    """An operator's words: the id of their part, and the time at which they were stored (epoch
    seconds)."""

    part: int
    at: float


def as_answered(
    turns: Iterable[EndedTurn], words: Iterable[ByHand]
) -> Sequence[EndedTurn | ByHand]:
    """Turns and operators' words in the order in which they were stored, by the ids of their parts.

    A turn without an answer has no part. It comes after the turns whose runs were made before it,
    and after the operators' words that were stored before it ended.
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
"""Seconds. A smaller step back is not taken for a clock that was set: the times of transactions
that wait for each other may differ by so much."""


@dataclass(eq=False)
class _Sequence(Generic[T]):
    """A sequence that is being merged. `next` is its next member, with its key, and `rest` what
    comes after that. `at` is the time of the member that was taken last; `followed` counts the
    steps back of the clock that the members taken so far have passed."""

    rest: Iterator[T]
    next: T
    key: SortKey
    followed: int = 0
    at: float = float("-inf")

    @property
    def back(self) -> float:
        """Seconds by which the next member's time is before that of the member taken last."""
        return max(0.0, self.at - self.key[0])


def _never(_one: object) -> bool:
    return False


def in_one_order(
    *several: Iterable[T], key: Callable[[T], SortKey], held: Callable[[T], bool] = _never
) -> Iterator[T]:
    """Merge sequences. Each keeps its own order; members of different sequences are ordered by
    time. A member is not taken while it is `held`; of the next members, at least one never is.

    If a member's time is before its predecessor's, the clock was set back between the two. Members
    of other sequences that were recorded before that come first. As nobody knows when the clock was
    set, these are taken to be all with times up to the predecessor's plus the size of the step.
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
    """The next member, or nothing at the end."""
    yield from itertools.islice(rest, 1)


def _goes_on(sequence: _Sequence[T], key: Callable[[T], SortKey]) -> bool:
    """Read the next member of the sequence. False: it has no more."""
    for found in _one(sequence.rest):
        sequence.next, sequence.key = found, key(found)
        return True
    return False
