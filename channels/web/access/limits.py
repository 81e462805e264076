"""Limits on the questions of a visitor, and of an address of the network, to one process.

They keep a program that runs wild away from the database. What is fair between people is judged
by intake (CHAT_MESSAGES_PER_MINUTE), which tells the person.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bot.domain.ports import Clock

_MINUTE = 60.0
_REQUESTS_PER_MESSAGE = 10
"""Questions are cheaper than messages: so many may be asked for each."""
_KNOWN_AT_MOST = 20_000
"""Names that are counted at once; the one that asked longest ago is forgotten first."""


@dataclass(slots=True)
class Limit:
    """So many of something a minute for each name, all at once if nothing was asked before."""

    per_minute: float
    clock: Clock
    _free_at: OrderedDict[str, float] = field(default_factory=OrderedDict)
    """For each name the moment at which its whole minute's worth is free again."""

    def wait(self, name: str) -> float:
        """Take one for this name: 0, or the seconds after which it is to be had."""
        now = self.clock.monotonic()
        each = _MINUTE / self.per_minute
        free_at = max(now, self._free_at.get(name, now)) + each
        if free_at - now > _MINUTE + each / 2:
            return free_at - now - _MINUTE
        self._free_at[name] = free_at
        self._free_at.move_to_end(name)
        if len(self._free_at) > _KNOWN_AT_MOST:
            self._free_at.popitem(last=False)
        return 0.0


class Places:
    """So many things at once, of which so many for one name."""

    def __init__(self, at_once: int, for_each: int) -> None:
        self._at_once = at_once
        self._for_each = for_each
        self._taken: Counter[str] = Counter()
        self._all = 0

    @property
    def full(self) -> bool:
        """Tell whether there is no place for anybody."""
        return self._all >= self._at_once

    @contextmanager
    def place(self, name: str) -> Iterator[bool]:
        """Tell whether there is a place; it is taken while the body runs."""
        if self.full or self._taken[name] >= self._for_each:
            yield False
            return
        self._taken[name] += 1
        self._all += 1
        try:
            yield True
        finally:
            self._all -= 1
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]


class Limits:
    """The limits of the API in this process: of requests, and of messages among them."""

    def __init__(self, visitor: int, address: int, clock: Clock) -> None:
        self._messages = Limit(visitor, clock), Limit(address, clock)
        self._requests = tuple(
            Limit(limit * _REQUESTS_PER_MESSAGE, clock) for limit in (visitor, address)
        )

    def address_waits(self, address: str) -> float:
        """Count one request of a network address; the seconds it should wait instead."""
        return self._requests[1].wait(address)

    def visitor_waits(self, visitor: str) -> float:
        """Count one request of a visitor; the seconds it should wait instead."""
        return self._requests[0].wait(visitor)

    def message_waits(self, visitor: str, address: str) -> float:
        """Count one message of a visitor from a network address."""
        return self._messages[0].wait(visitor) or self._messages[1].wait(address)
