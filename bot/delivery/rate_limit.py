"""The rate limits of one account: at which moment may this message leave?

Three limits hold at once, each by the generic cell rate algorithm: messages a second of the
account, a second in one chat, a minute in one group. The limiter is asked once for a part, and
waited for before the part is marked as being sent:

* A wait within the caller's patience is spent in place. First the chat's and the group's own
  limits are waited out; only then a place in the account's line is taken, so that a hot group
  holds up nobody else.
* For a longer wait nothing is taken. The caller hears when to come back; these moments lie
  apart at the rate of the limit, so that a backlog comes back evenly and not all at once.
* A place that was not used is given back: by `refund`, or when the caller is cancelled.

A process claims as many runs of an account as keep its line short and never empty (`room`): what
can't leave soon waits where any process may take it, and is claimed once.

The line of an account is never longer than its callers' patience, and it is never empty while
somebody waits: the account is used at its rate, whoever comes late or not at all.

With Redis the processes share all limits. Without it, or while it is away, a process keeps to
its share of what concerns more than one chat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol

from bot.domain.delivery import LimitOf
from bot.domain.message import ChatKind
from bot.domain.ports import Clock, Pace, Recipient

_CHAT_USED = 0.95
_ACCOUNT_USED = 0.97
"""Parts of the named rates that are used: what leaves evenly may arrive unevenly."""
_GROUP_BURST = 3
_RETURNED_PATIENCE = 30.0
"""Seconds that one who was told to come back waits in the account's line: it is told once."""
_LINE = 1.0
"""Seconds of an account's line that a process has turns for, besides those that do not stand in
it."""
_WORTH = 0.25
"""The part of that line for which a claim is worth its statements."""
_SLOWER = 1.25
"""The factor by which turns may take longer than lately without a gap in the line."""
_LATELY = 16
"""So many turns tell how long they take."""
_ANY_NUMBER = 1_000_000
"""Of turns of an account: more than a process ever has."""
_LATE = 0.05
"""Seconds by which a sleep may end late on a busy machine without a loss of rate. Processes divide
it: where all of them stood still, all would make up for it at once."""
_REFUSED_CHATS = 3
_REFUSED_WITHIN = 1.0
"""So many chats refused within so many seconds: the limit is the whole account's."""
_TIDY_EVERY = 1000


@dataclass(frozen=True, slots=True)
class Limit:
    """Messages under `name` at least `interval` seconds apart, but for bursts worth `slack`
    seconds. `shared` says that it concerns more than one chat."""

    name: str
    interval: float
    slack: float = 0.0
    shared: bool = True


class AcrossProcesses(Protocol):
    """The limits of one account over all processes."""

    async def ask(
        self, limits: Sequence[Limit], in_line: float, patience: float
    ) -> tuple[float, bool] | None:
        """As `Local.ask`. None: it can't be asked now."""
        ...

    def give_back(self, limits: Sequence[Limit]) -> None:
        """Return places that were not used. Never waits."""
        ...

    async def hold(self, limit: Limit, seconds: float) -> None:
        """Let nothing leave under this limit for so long, from any process."""
        ...


class Local:
    """The limits as one process keeps them. A name's moment is that of the next message in an
    even flow."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}
        self._named: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._next) + len(self._named)

    def ask(
        self, limits: Sequence[Limit], now: float, in_line: float, patience: float
    ) -> tuple[float, bool]:
        """(seconds, True): a place was taken so many seconds from now, at most `in_line`.
        (seconds, False): none was; ask again then. The account's limit comes first in `limits`.
        A wait for one of the others beyond `patience`, and one that is too long for the line,
        is named so that those who come back lie apart; not so for a negative patience."""
        account, *own = limits
        binding = max(own, key=lambda limit: self._wait(limit, now), default=account)
        wait = self._wait(binding, now)
        if wait <= 0 or binding is account:
            binding, wait = account, self._wait(account, now)
            if wait <= in_line:
                self.take(limits, now + wait)
                return wait, True
        if patience < 0 or (binding is not account and wait <= patience):
            return wait, False
        named = max(now + wait, self._named.get(binding.name, 0.0))
        self._named[binding.name] = named + binding.interval
        return named - now, False

    def take(self, limits: Sequence[Limit], at: float) -> None:
        for limit in limits:
            self._next[limit.name] = max(self._next.get(limit.name, 0.0), at) + limit.interval

    def give_back(self, limits: Sequence[Limit]) -> None:
        for limit in limits:
            if limit.name in self._next:
                self._next[limit.name] -= limit.interval

    def hold(self, limit: Limit, until: float) -> None:
        self._next[limit.name] = max(self._next.get(limit.name, 0.0), until)

    def _wait(self, limit: Limit, now: float) -> float:
        return max(0.0, self._next.get(limit.name, 0.0) - limit.slack - now)

    def tidy(self, now: float) -> None:
        """Drop the names that say nothing any more."""
        for moments in (self._next, self._named):
            for name in [name for name, at in moments.items() if at < now]:
                del moments[name]


@dataclass(frozen=True, slots=True)
class Permit:
    """The right to send one message now. `wait` > 0: there is none; come back after so long."""

    wait: float
    undo: Callable[[], None] | None = None

    @property
    def taken(self) -> bool:
        return self.wait <= 0

    def refund(self) -> None:
        """The message did not leave after all."""
        if self.undo is not None:
            self.undo()


@dataclass(slots=True)
class _Gate:
    """One after the other; when the next may follow the last one that was let through."""

    free_at: float = 0.0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class _Turn:
    """The seconds that a turn has stood in line."""

    in_line: float = 0.0


_TURN: ContextVar[_Turn] = ContextVar("turn")


class RateLimiter:
    """The rate limits of one account."""

    def __init__(self, pace: Pace, clock: Clock, shared: AcrossProcesses | None = None) -> None:
        self._pace = pace
        self._clock = clock
        self._shared = shared
        self._local = Local()
        self._refused: dict[str, float] = {}
        self._held_until = 0.0
        self._called_up, self._calls = _Gate(), _Gate()
        self._processes = 1
        self._asked = 0
        self.turns = 0
        """Turns of this account that are under way in this process."""
        self._turn_takes: float | None = None

    def share(self, processes: int) -> None:
        """So many processes send for this account now."""
        self._processes = max(1, processes)

    @property
    def room(self) -> int:
        """The number of turns of this account that may begin here: as many as are at their agents,
        their commits and their calls, or in line, while the account is used at its rate. 0 while
        they are too few to claim."""
        if self._pace.overall is None or self._turn_takes is None:
            return _ANY_NUMBER
        rate = self._pace.overall * _ACCOUNT_USED / self._processes
        free = ceil(rate * (_SLOWER * self._turn_takes + _LINE)) - self.turns
        return free if free >= rate * _LINE * _WORTH else 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Learn from a turn of this account how long it takes, but for its time in line."""
        began, turn = self._clock.monotonic(), _Turn()
        token = _TURN.set(turn)
        try:
            yield
        finally:
            _TURN.reset(token)
            seconds = self._clock.monotonic() - began - turn.in_line
            before = seconds if self._turn_takes is None else self._turn_takes
            self._turn_takes = before + (seconds - before) / _LATELY

    async def permit(
        self, to: Recipient, patience: float | None = None, *, returned: bool = False
    ) -> Permit:
        """Wait for a place, at most `patience` seconds; without patience, take one that is free
        now. `returned` says that the caller was told before to come back."""
        limits = tuple(self._limits(to))
        ends_at = self._clock.monotonic() + (patience or 0.0)
        while True:
            now = self._clock.monotonic()
            self._asked += 1
            if self._asked % _TIDY_EVERY == 0:
                self._local.tidy(now)
            left = max(0.0, ends_at - now)
            in_line = _RETURNED_PATIENCE if returned and patience else left
            wait, permit = await self._ask(limits, in_line, -1.0 if patience is None else left)
            if permit is None and wait > left:
                return Permit(wait)
            try:
                if wait > 0:
                    await self._clock.sleep(wait)
                    if permit is not None:
                        await self._apart(self._called_up)
                    self._stood_in_line(now)
            except BaseException:
                if permit is not None:
                    permit.refund()
                raise
            # Not when the account was held while this one stood in line.
            if permit is not None and self._clock.monotonic() >= self._held_until:
                return permit

    async def even_out(self) -> None:
        """Keep calls apart that are about to begin together although they were called up apart:
        commits take uneven times. Milliseconds as a rule."""
        began = self._clock.monotonic()
        await self._apart(self._calls)
        self._stood_in_line(began)

    def _stood_in_line(self, since: float) -> None:
        if (turn := _TURN.get(None)) is not None:
            turn.in_line += self._clock.monotonic() - since

    async def _apart(self, gate: _Gate) -> None:
        """Wait until this is as far from the last one as the account's limit has it."""
        if self._pace.overall is None:
            return
        share = 1 if self._shared is not None else self._processes
        async with gate.turn:
            now = self._clock.monotonic()
            if gate.free_at > now:
                await self._clock.sleep(gate.free_at - now)
            # When everything stood still for a while, hardly any of it is made up for at once.
            made_up = self._clock.monotonic() - _LATE / self._processes
            gate.free_at = max(gate.free_at, made_up) + share / self._pace.overall

    async def _ask(
        self, limits: Sequence[Limit], in_line: float, patience: float
    ) -> tuple[float, Permit | None]:
        held = self._held_until
        if self._shared is not None:
            answer = await self._shared.ask(limits, in_line, patience)
            if answer is not None:
                wait, taken = answer
                if not taken:
                    return wait, None
                # Should Redis go away, this process knows what has left.
                self._local.take(limits, self._clock.monotonic() + wait)
                return wait, Permit(0.0, lambda: self._give_back(limits, self._shared, held))
        mine = tuple(map(self._my_share, limits))
        wait, taken = self._local.ask(mine, self._clock.monotonic(), in_line, patience)
        return wait, Permit(0.0, lambda: self._give_back(mine, None, held)) if taken else None

    def _give_back(
        self, limits: Sequence[Limit], shared: AcrossProcesses | None, held: float
    ) -> None:
        if self._held_until != held:
            return  # What was taken before a hold says nothing about what leaves after it.
        self._local.give_back(limits)
        if shared is not None:
            shared.give_back(limits)

    async def refused(self, to: Recipient, wait: float, limit: LimitOf) -> None:
        """The platform said that a limit was reached: hold the whole account for `wait` seconds
        if it is the account's, which the refusal says or several chats at once show."""
        if limit is LimitOf.CHAT:
            return
        now = self._clock.monotonic()
        self._refused = {c: at for c, at in self._refused.items() if at > now - _REFUSED_WITHIN}
        self._refused[to.address.chat] = now
        if limit is LimitOf.ACCOUNT or len(self._refused) >= _REFUSED_CHATS:
            self._held_until = max(self._held_until, now + wait)
            self._local.hold(self._account(), self._held_until)
            if self._shared is not None:
                await self._shared.hold(self._account(), wait)

    def _my_share(self, limit: Limit) -> Limit:
        if not limit.shared:
            return limit
        return Limit(limit.name, limit.interval * self._processes, limit.slack)

    def _account(self) -> Limit:
        overall = self._pace.overall
        return Limit("all", 0.0 if overall is None else 1 / (overall * _ACCOUNT_USED))

    def _limits(self, to: Recipient) -> Iterator[Limit]:
        yield self._account()
        if self._pace.per_chat is not None:
            interval = 1 / (self._pace.per_chat * _CHAT_USED)
            slack = interval * (self._pace.chat_burst - 1)
            yield Limit(f"chat:{to.address.chat}", interval, slack, shared=False)
        if self._pace.per_group_minute is not None and to.kind is not ChatKind.PRIVATE:
            even = 60 / (self._pace.per_group_minute - _GROUP_BURST)
            yield Limit(f"group:{to.address.chat}", even, even * (_GROUP_BURST - 1))

    def forget_idle(self) -> None:
        """Drop the chats whose limits say nothing any more: the maps stay small."""
        self._local.tidy(self._clock.monotonic())

    def __len__(self) -> int:
        return len(self._local)
