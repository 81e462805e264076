"""Keeping to a platform's pace: a slot is reserved before a part is marked as being sent.

Three limits hold at once: messages a second in one chat, a minute in one group, a second in
all. The first two are asked first, and nothing is reserved while they say wait, so that a hot
group holds up nobody else. The overall limit is a queue: who has to wait there gets a place
that is kept for the moment when it is due, so that a hundred waiters wake up one after the
other instead of all at once.

With Redis the processes share all limits. Without it, or while it is away, a process keeps to
its share of what concerns more than one chat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.message import ChatKind
from bot.domain.ports import Clock, Pace, Recipient

_CHAT_SHY = 0.95
_OVERALL_SHY = 0.9
"""We stay under the named rate: what leaves evenly may arrive unevenly."""
_GROUP_BURST = 3
_LATE = 0.1
"""Seconds for which a place in the queue is kept after it was due."""
_TIDY_EVERY = 1000


@dataclass(frozen=True, slots=True)
class Limit:
    """Messages under `name` at least `interval` seconds apart, but for bursts worth `slack`
    seconds. `shared` says that it concerns more than one chat."""

    name: str
    interval: float
    slack: float = 0.0
    shared: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """`wait` > 0: nothing was reserved, ask again after so long. Else a place was, `delay`
    seconds from now."""

    wait: float
    delay: float = 0.0


class Shared(Protocol):
    """The limits of one account over all processes."""

    async def reserve(self, queue: Limit, limits: Sequence[Limit]) -> tuple[float, float] | None:
        """(wait, delay) in seconds, as in `Answer`: a place in the queue if the other limits
        allow it. None: it can't be asked now."""
        ...

    def give_back(self, limits: Sequence[Limit]) -> None:
        """Places that were not used. Never waits."""
        ...


class Beats:
    """The limits as one process sees them: when the next message under each name may leave."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._next)

    def wait(self, limit: Limit, now: float) -> float:
        return max(0.0, self._next.get(limit.name, 0.0) - limit.slack - now)

    def take(self, limit: Limit, at: float) -> None:
        self._next[limit.name] = max(self._next.get(limit.name, 0.0), at) + limit.interval

    def give_back(self, limit: Limit) -> None:
        if limit.name in self._next:
            self._next[limit.name] -= limit.interval

    def tidy(self, now: float) -> None:
        """Drop the names that say nothing any more."""
        for name in [name for name, at in self._next.items() if at < now]:
            del self._next[name]


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Slot:
    """A place. `wait` > 0: it is not the moment, ask again after so long."""

    wait: float
    undo: Callable[[], None] = _nothing

    def refund(self) -> None:
        """The message did not leave after all."""
        self.undo()


@dataclass(frozen=True, slots=True)
class _Kept:
    """A place in the queue that is kept for a chat until its moment."""

    at: float
    slot: Slot


class Pacer:
    """The pace of one account."""

    def __init__(self, pace: Pace, clock: Clock, shared: Shared | None = None) -> None:
        self._pace = pace
        self._clock = clock
        self._shared = shared
        self._beats = Beats()
        self._left = Beats()
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._processes = 1
        self._asked = 0

    def share(self, processes: int) -> None:
        """So many processes send for this account now."""
        self._processes = max(1, processes)

    async def reserve(self, to: Recipient) -> Slot:
        """Take a place if it is the moment; else say how long to wait."""
        now = self._clock.monotonic()
        who = (to.address.chat, to.address.topic)
        if (kept := self._kept.get(who)) is not None:
            if now < kept.at:
                return Slot(kept.at - now)
            del self._kept[who]
            if now <= kept.at + _LATE:
                return kept.slot
        self._tidy_sometimes(now)
        answer, slot = await self._ask(tuple(self._limits(to)), now)
        if answer.wait > 0:
            return Slot(answer.wait)
        if answer.delay > 0:
            self._kept[who] = _Kept(now + answer.delay, slot)
            return Slot(answer.delay)
        return slot

    async def leave(self, to: Recipient) -> None:
        """Wait for the moment at which a message may really leave.

        A place is reserved before a commit, and commits take uneven times: without this,
        places that lie apart could be used together.
        """
        now = self._clock.monotonic()
        limits = tuple(self._exact(to))
        at = now + max((self._left.wait(limit, now) for limit in limits), default=0.0)
        for limit in limits:
            self._left.take(limit, at)
        if at > now:
            await self._clock.sleep(at - now)

    def _exact(self, to: Recipient) -> Iterator[Limit]:
        """What lies between two messages that leave, at the rates that the platform names."""
        if self._pace.overall is not None:
            yield Limit("all", self._processes / self._pace.overall)
        if self._pace.per_chat is not None:
            yield Limit(f"chat:{to.address.chat}", 1 / self._pace.per_chat, shared=False)

    async def _ask(self, limits: Sequence[Limit], now: float) -> tuple[Answer, Slot]:
        queue = self._queue()
        if self._shared is not None:
            told = await self._shared.reserve(queue, limits)
            if told is not None:
                answer = Answer(*told)
                taken = (queue, *limits) if answer.wait <= 0 else ()
                for limit in taken:
                    self._beats.take(limit, now + answer.delay)
                return answer, Slot(0.0, lambda: self._give_back(taken, shared=True))
        queue, *mine = (self._my_share(limit) for limit in (queue, *limits))
        wait = max((self._beats.wait(limit, now) for limit in mine), default=0.0)
        if wait > 0:
            return Answer(wait), Slot(wait)
        delay = self._beats.wait(queue, now)
        taken = (queue, *mine)
        for limit in taken:
            self._beats.take(limit, now + delay)
        return Answer(0.0, delay), Slot(0.0, lambda: self._give_back(taken, shared=False))

    def _give_back(self, taken: Sequence[Limit], *, shared: bool) -> None:
        for limit in taken:
            self._beats.give_back(limit)
        if shared and self._shared is not None and taken:
            self._shared.give_back(taken)

    def _my_share(self, limit: Limit) -> Limit:
        if not limit.shared:
            return limit
        return Limit(limit.name, limit.interval * self._processes, limit.slack)

    def _queue(self) -> Limit:
        overall = self._pace.overall
        return Limit("all", 0.0 if overall is None else 1 / (overall * _OVERALL_SHY))

    def _limits(self, to: Recipient) -> Iterator[Limit]:
        if self._pace.per_chat is not None:
            interval = 1 / (self._pace.per_chat * _CHAT_SHY)
            yield Limit(f"chat:{to.address.chat}", interval, shared=False)
        if self._pace.per_group_minute is not None and to.kind is not ChatKind.PRIVATE:
            even = 60 / (self._pace.per_group_minute - _GROUP_BURST)
            yield Limit(f"group:{to.address.chat}", even, even * (_GROUP_BURST - 1))

    def _tidy_sometimes(self, now: float) -> None:
        self._asked += 1
        if self._asked % _TIDY_EVERY == 0:
            self._tidy(now)

    def forget_idle(self) -> None:
        """Drop the chats whose pace says nothing any more: the maps stay small."""
        self._tidy(self._clock.monotonic())

    def _tidy(self, now: float) -> None:
        self._beats.tidy(now)
        self._left.tidy(now)
        for who in [who for who, kept in self._kept.items() if kept.at + _LATE < now]:
            del self._kept[who]

    def __len__(self) -> int:
        return len(self._beats) + len(self._left) + len(self._kept)
