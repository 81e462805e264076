"""Lanes: everything that waits for the same move shares its next transaction (group commit).

Statements are expensive, rows are cheap. So a move is written for a list, and a lane hands it
everything that came while its last transaction ran. In an idle lane, a list of one goes at once.

* Members with the same key (a chat) keep their order: a list has at most one of them.
* A move never waits for rows that somebody else has locked (`SKIP LOCKED`), so that neither a
  stalled process nor another list holds up everybody. It leaves such a member out, and the member
  is tried again in the next lists, since most locks are another list's and soon gone. If nothing
  else waits, the lane pauses briefly in between. After that, the member is moved by itself, where
  it may wait for the lock; few are moved so at the same time.
* A list that fails, or that meets a lock which can't be skipped (of a unique key), is split in half
  until what broke it is alone, and that member is moved by itself. The others are not affected.
* Members that are not ordinary are left out as well, and then moved by themselves.
* When the process ends and nothing is written any more, the callers that wait are cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextvars import Context
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from bot.domain.errors import DatabaseUnavailable
from storage.statements.tx import RowsLocked, Tx

Item = TypeVar("Item")
Result = TypeVar("Result")


class LeftOut(Enum):
    """The reason why a move left out a member of its list."""

    LOCKED = "somebody else has locked its rows"
    ALONE = "it is not ordinary"


_AT_ONCE = {LeftOut.LOCKED: 2, LeftOut.ALONE: 4}
"""The number of members of a lane that may be moved by themselves at the same time. Each holds a
connection, perhaps while it waits for a lock, and lists need connections too."""

_RIDES = 8
_RIDES_FOR = 0.5
"""A member whose rows are locked is tried again in at least so many lists, and for so many seconds.
Moved by itself, it would hardly get its lock sooner."""
_MOMENT = 0.02
"""Seconds: about as long as a list takes."""


@dataclass(slots=True, eq=False)
class _Member(Generic[Item, Result]):
    item: Item
    key: Hashable
    told: asyncio.Future[Result]
    left_out: int = 0
    first_left_out: float = 0.0

    def rides_on(self, now: float) -> bool:
        """Count that it was left out. True: it is tried again in the next list."""
        self.first_left_out = self.first_left_out or now
        self.left_out += 1
        return self.left_out <= _RIDES or now - self.first_left_out < _RIDES_FOR

    def fail(self, error: Exception) -> None:
        if not self.told.done():
            self.told.set_exception(error)

    def tell(self, result: Result) -> None:
        if not self.told.done():
            self.told.set_result(result)


class Lane(Generic[Item, Result]):
    """The lane of one move. `together` moves a list, and returns for each member, in order, its
    result, the error for its caller, or why it was left out. `alone` moves one member by itself.

    `longest` is the most members of a list; when `bound` members wait, `do` raises
    DatabaseUnavailable.
    """

    def __init__(
        self,
        write: Callable[..., Awaitable[Any]],
        together: Callable[[Tx, Sequence[Item]], Sequence[Result | Exception | LeftOut]],
        alone: Callable[[Tx, Item], Result],
        key: Callable[[Item], Hashable],
        *,
        longest: int = 100,
        bound: int = 10_000,
    ) -> None:
        self._write = write
        self._move = together
        self._alone = alone
        self._key = key
        self._longest = longest
        self._bound = bound
        self._waiting: list[_Member[Item, Result]] = []
        self._came = asyncio.Event()
        self._busy: set[Hashable] = set()
        self._runs: asyncio.Task[None] | None = None
        self._singles: set[asyncio.Task[None]] = set()
        self._slots = {why: asyncio.Semaphore(few) for why, few in _AT_ONCE.items()}

    async def do(self, item: Item) -> Result:
        """Move one member, together with others that wait. If the caller is cancelled before its
        list begins, the member is dropped. Raises DatabaseUnavailable, and what the move raises
        for this member."""
        if len(self._waiting) + len(self._singles) >= self._bound:
            raise DatabaseUnavailable(f"{self._bound} others wait for the database already")
        told: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Member(item, self._key(item), told))
        self._came.set()
        self._start()
        return await told

    def _start(self) -> None:
        if self._runs is None and self._waiting:
            # In a context of its own: log lines of a list belong to no single run.
            self._runs = asyncio.create_task(self._run(), name="lane", context=Context())

    async def _run(self) -> None:
        taken: list[_Member[Item, Result]] = []
        try:
            while taken := self._take():
                await self._together(taken)
                if self._waiting and all(member.left_out for member in self._waiting):
                    await self._wait_for_more()
        except asyncio.CancelledError:
            for member in (*taken, *self._waiting):
                member.told.cancel()
            raise
        finally:
            self._runs = None

    async def _wait_for_more(self) -> None:
        """Pause, since everything that waits is locked, for a moment or until a member comes."""
        self._came.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_MOMENT):
                await self._came.wait()

    def _take(self) -> list[_Member[Item, Result]]:
        """The next list: the oldest member of each key, unless one of that key is moved alone."""
        keys = set(self._busy)
        taken: list[_Member[Item, Result]] = []
        rest: list[_Member[Item, Result]] = []
        for member in self._waiting:
            if member.told.cancelled():
                continue
            if len(taken) < self._longest and member.key not in keys:
                taken.append(member)
            else:
                rest.append(member)
            keys.add(member.key)
        self._waiting = rest
        return taken

    async def _together(self, taken: list[_Member[Item, Result]]) -> None:
        try:
            outcomes = await self._write(self._move, [member.item for member in taken])
        except Exception as error:  # noqa: BLE001 - the list's edge: the error belongs to one member
            await self._failed(taken, error)
        else:
            self._tell(taken, outcomes)

    async def _failed(self, taken: list[_Member[Item, Result]], error: Exception) -> None:
        if isinstance(error, DatabaseUnavailable) and not isinstance(error, RowsLocked):
            for member in taken:
                member.fail(DatabaseUnavailable(str(error)))
        elif len(taken) > 1:
            half = len(taken) // 2
            await self._together(taken[:half])
            await self._together(taken[half:])
        else:
            locked = isinstance(error, RowsLocked)
            self._move_alone(taken[0], LeftOut.LOCKED if locked else LeftOut.ALONE)

    def _tell(
        self, taken: list[_Member[Item, Result]], outcomes: Sequence[Result | Exception | LeftOut]
    ) -> None:
        again, now = [], asyncio.get_running_loop().time()
        for member, outcome in zip(taken, outcomes, strict=True):
            if outcome is LeftOut.LOCKED and member.rides_on(now):
                again.append(member)
            elif isinstance(outcome, LeftOut):
                self._move_alone(member, outcome)
            elif isinstance(outcome, Exception):
                member.fail(outcome)
            else:
                member.tell(outcome)
        self._waiting[:0] = again

    def _move_alone(self, member: _Member[Item, Result], why: LeftOut) -> None:
        self._busy.add(member.key)
        moving = self._single(member, self._slots[why])
        single = asyncio.create_task(moving, name="lane-single", context=Context())
        self._singles.add(single)
        single.add_done_callback(self._singles.discard)

    async def _single(self, member: _Member[Item, Result], slot: asyncio.Semaphore) -> None:
        try:
            async with slot:
                if not member.told.cancelled():
                    member.tell(await self._write(self._alone, member.item))
        except asyncio.CancelledError:
            member.told.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - the member's edge: its caller gets the error
            member.fail(error)
        finally:
            self._busy.discard(member.key)
            self._start()
