"""The rate limits of one account: the moment at which a part may leave.

Three limits hold at once, each enforced by the generic cell rate algorithm (GCRA): messages per
second for the account, per second for each chat, and per minute for each group. A caller asks for
a permit before it marks a part as being sent:

* If the wait is within the caller's patience, `permit` sleeps it off. It first waits for the limits
  of the chat and the group, and only then joins the account's line, so that a busy group does not
  hold up other chats.
* If the wait is longer, nothing is reserved, and the caller is told when to come back. These times
  are spread out at the rate of the limit, so that a backlog returns evenly and not all at once.
* A permit that is not used goes back, by `refund` or because the caller was cancelled.

The account's line holds the callers whose turn is near. It is never longer than their patience, and
never empty while somebody waits, so the account's full rate is used even when some callers come
late or never.

`room` bounds how many runs of an account a process claims: enough to keep the line from running
empty, and no more. The rest stays unclaimed, where any process may take it.

With Redis, all processes share the limits. Without it, or while it can't be reached, each process
keeps to its share of the limits that concern more than one chat.
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
"""The fractions of the documented rates that we use: what leaves evenly may arrive unevenly."""
_GROUP_BURST = 3
_RETURNED_PATIENCE = 30.0
"""Seconds that a caller who was told to come back may wait in the account's line: nobody is sent
away twice."""
_LINE = 1.0
"""The length of an account's line, in seconds of sending, for which a process claims turns."""
_WORTH = 0.25
"""The fraction of that line below which a claim is not worth its statements."""
_SLOWER = 1.25
"""The factor by which turns may become slower without leaving a gap in the line."""
_LATELY = 16
"""The number of turns over which their duration is averaged."""
_ANY_NUMBER = 1_000_000
"""Turns: more than a process ever has."""
_LATE = 0.05
"""Seconds by which a sleep may end late on a busy machine without lowering the rate. Divided by the
number of processes: if all of them stood still, all would catch up at the same time."""
_REFUSED_CHATS = 3
_REFUSED_WITHIN = 1.0
"""This many chats refused within this many seconds mean that the whole account is limited."""
_TIDY_EVERY = 1000


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: messages under `name` leave at least `interval` seconds apart, except for bursts
    of up to `slack` seconds' worth. `shared`: it concerns more than one chat."""

    name: str
    interval: float
    slack: float = 0.0
    shared: bool = True


class AcrossProcesses(Protocol):
    """The limits of one account, shared by all processes."""

    async def ask(
        self, limits: Sequence[Limit], in_line: float, patience: float
    ) -> tuple[float, bool] | None:
        """As `Local.ask`; None while the shared store can't be reached."""
        ...

    def give_back(self, limits: Sequence[Limit]) -> None:
        """Return what was reserved and not used. Never blocks."""
        ...

    async def hold(self, limit: Limit, seconds: float) -> None:
        """Let nothing leave under this limit, from any process, for this many seconds."""
        ...


class Local:
    """The limits as one process keeps them in memory.

    `_next` has, for each limit, the monotonic second at which its next message would leave in an
    even flow; `_named` the last time that a caller was told to come back at.
    """

    def __init__(self) -> None:
        self._next: dict[str, float] = {}
        self._named: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._next) + len(self._named)

    def ask(
        self, limits: Sequence[Limit], now: float, in_line: float, patience: float
    ) -> tuple[float, bool]:
        """Reserve a moment to send; the account's limit comes first in `limits`.

        (seconds, True): reserved, that many seconds from now, at most `in_line`.
        (seconds, False): nothing was reserved; ask again after that time. Where it is beyond
        `patience`, or too long for the line, each caller is given a time of its own, apart from the
        others'; with a negative patience it only says how long the wait is.
        """
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
        """Forget the limits whose moments have passed."""
        for moments in (self._next, self._named):
            for name in [name for name, at in moments.items() if at < now]:
                del moments[name]


@dataclass(frozen=True, slots=True)
class Permit:
    """The right to send one message now, or, where `wait` > 0, the seconds until asking again."""

    wait: float
    undo: Callable[[], None] | None = None

    @property
    def taken(self) -> bool:
        return self.wait <= 0

    def refund(self) -> None:
        """Give it back: the message did not leave after all."""
        if self.undo is not None:
            self.undo()


@dataclass(slots=True)
class _Gate:
    """A gate that lets callers through one at a time; `free_at` is when the next may follow."""

    free_at: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class _Turn:
    """The seconds that a turn has spent in line."""

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
        """Divide the limits between this many processes."""
        self._processes = max(1, processes)

    @property
    def room(self) -> int:
        """The number of further turns of this account that may begin here.

        In all, as many as it takes to use the account's rate: those that are being worked on, given
        how long a turn takes, and a short line. 0 where a claim would bring too few.
        """
        if self._pace.overall is None or self._turn_takes is None:
            return _ANY_NUMBER
        rate = self._pace.overall * _ACCOUNT_USED / self._processes
        free = ceil(rate * (_SLOWER * self._turn_takes + _LINE)) - self.turns
        return free if free >= rate * _LINE * _WORTH else 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Measure how long a turn of this account takes, without its time in line."""
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
        """Wait for a permit, at most `patience` seconds; None: take one only if it is free now.
        `returned`: the caller was told to come back earlier."""
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
            # If the account was put on hold while this caller stood in line, ask again.
            if permit is not None and self._clock.monotonic() >= self._held_until:
                return permit

    async def even_out(self) -> None:
        """Space out calls whose permits were apart but whose commits ended together. Usually
        waits milliseconds."""
        began = self._clock.monotonic()
        await self._apart(self._calls)
        self._stood_in_line(began)

    def _stood_in_line(self, since: float) -> None:
        if (turn := _TURN.get(None)) is not None:
            turn.in_line += self._clock.monotonic() - since

    async def _apart(self, gate: _Gate) -> None:
        """Wait until the account's interval has passed since the last caller at this gate."""
        if self._pace.overall is None:
            return
        share = 1 if self._shared is not None else self._processes
        async with gate.lock:
            now = self._clock.monotonic()
            if gate.free_at > now:
                await self._clock.sleep(gate.free_at - now)
            # After a standstill, hardly any of the lost time is caught up at once.
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
                # Also counted here, in case Redis goes away.
                self._local.take(limits, self._clock.monotonic() + wait)
                return wait, Permit(0.0, lambda: self._give_back(limits, self._shared, held))
        mine = tuple(map(self._my_share, limits))
        wait, taken = self._local.ask(mine, self._clock.monotonic(), in_line, patience)
        return wait, Permit(0.0, lambda: self._give_back(mine, None, held)) if taken else None

    def _give_back(
        self, limits: Sequence[Limit], shared: AcrossProcesses | None, held: float
    ) -> None:
        if self._held_until != held:
            return  # Reserved before a hold, it no longer counts for what leaves after it.
        self._local.give_back(limits)
        if shared is not None:
            shared.give_back(limits)

    async def refused(self, to: Recipient, wait: float, limit: LimitOf) -> None:
        """Note that the platform refused a message because a limit was reached.

        The whole account is put on hold for `wait` seconds if the limit is the account's: the
        refusal says so, or several chats were refused at once.
        """
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
        """Forget the limits of idle chats, so that the maps stay small."""
        self._local.tidy(self._clock.monotonic())

    def __len__(self) -> int:
        return len(self._local)
