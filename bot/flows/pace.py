"""Keeping to a platform's pace: a slot is reserved before a part is marked as being sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bot.domain.message import ChatKind
from bot.domain.ports import Clock, Pace, Recipient

_SHY = 0.95
"""We stay a little under the named rate: what leaves evenly may arrive unevenly."""
_GROUP_BURST = 3


@dataclass(slots=True)
class _Beat:
    """When the next message may leave (monotonic seconds), with `slack` for a short burst."""

    interval: float
    slack: float
    next_at: float = 0.0

    def wait(self, now: float) -> float:
        return max(0.0, self.next_at - self.slack - now)

    def take(self, now: float) -> None:
        self.next_at = max(self.next_at, now) + self.interval


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the queue. `wait` > 0: nothing was reserved, ask again after so long."""

    wait: float
    beats: tuple[_Beat, ...] = ()

    def refund(self) -> None:
        """The message did not leave after all."""
        for beat in self.beats:
            beat.next_at -= beat.interval


class Pacer:
    """The pace of one account in this process. `share` divides the overall rate between the
    processes that send for it."""

    def __init__(self, pace: Pace, clock: Clock) -> None:
        self._pace = pace
        self._clock = clock
        self._overall = None if pace.overall is None else _Beat(1 / (pace.overall * _SHY), 0.0)
        self._chats: dict[str, _Beat] = {}
        self._groups: dict[str, _Beat] = {}

    def share(self, processes: int) -> None:
        """So many processes send for this account now."""
        if self._overall is not None and self._pace.overall is not None:
            self._overall.interval = max(1, processes) / (self._pace.overall * _SHY)

    def reserve(self, to: Recipient) -> Slot:
        """Take the next slot if it is now; else say how long to wait."""
        now = self._clock.monotonic()
        beats = tuple(self._beats(to))
        wait = max((beat.wait(now) for beat in beats), default=0.0)
        if wait > 0:
            return Slot(wait)
        for beat in beats:
            beat.take(now)
        return Slot(0.0, beats)

    def forget_idle(self) -> None:
        """Drop the chats whose pace says nothing any more: the map stays small."""
        now = self._clock.monotonic()
        for kept in (self._chats, self._groups):
            for address in [a for a, beat in kept.items() if beat.next_at < now]:
                del kept[address]

    def __len__(self) -> int:
        return len(self._chats) + len(self._groups)

    def _beats(self, to: Recipient) -> Iterator[_Beat]:
        if self._overall is not None:
            yield self._overall
        if self._pace.per_chat is not None:
            yield self._chats.setdefault(
                to.address.chat, _Beat(1 / (self._pace.per_chat * _SHY), 0.0)
            )
        if self._pace.per_group_minute is not None and to.kind is not ChatKind.PRIVATE:
            even = 60 / (self._pace.per_group_minute - _GROUP_BURST)
            yield self._groups.setdefault(to.address.chat, _Beat(even, even * (_GROUP_BURST - 1)))
