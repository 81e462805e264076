"""Followers: clients that are told of a chat's events as they come, from its journal.

A hint says in which chat to look, and once a second all chats that are followed are looked at in
one question. What is told is read from rows, so that any process serves any chat and a hint may
be lost. An event is written out once for all who follow its chat here.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Self

from bot.clients import moves
from bot.domain.clients.desk import Wire
from bot.domain.clients.journal import ChatEvent, Snapshot
from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import Address
from bot.leases.runtime import Runtime
from storage import chats
from storage.views import sessions

_BEHIND = 64
"""Pieces that may wait for one client; who is further behind comes back and reads rows."""
_BEGINNINGS = 8
"""Followers that read where they begin at the same time: thousands come back at once."""
_LOOK_EVERY = 1.0
_LOCKED_AGAIN = 0.05
"""Seconds until a chat is looked at again that somebody had locked."""
_PROJECTED_AT_ONCE = 50
"""Chats of one transaction."""
_RETURN_WITHIN = (0.2, 2.5)
"""Seconds over which clients spread their return from a process that leaves."""

_log = logging.getLogger("answerback.followers")


class Follower:
    """One client that follows a chat; a context in which it does. `n` is the number of the last
    event that it was given, None until it has begun."""

    __slots__ = (
        "_begin",
        "_forget",
        "_pieces",
        "_wake",
        "chat",
        "ended",
        "n",
        "session",
        "slow",
        "until",
        "who",
    )

    def __init__(
        self,
        who: Address,
        session: str,
        until: float,
        begin: Callable[[Follower], Awaitable[None]],
        forget: Callable[[Follower], None],
    ) -> None:
        self.who = who
        self.session = session
        self.until = until
        self.chat: int | None = None
        self.n: int | None = None
        self.ended = False
        self.slow = False
        self._begin = begin
        self._forget = forget
        self._pieces: deque[bytes] = deque()
        self._wake = asyncio.Event()

    async def __aenter__(self) -> Self:
        try:
            await self._begin(self)
        except BaseException:
            self._forget(self)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._forget(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._pieces:
            if self.ended:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        return self._pieces.popleft()

    @property
    def idle(self) -> bool:
        """Tell whether it has been given everything."""
        return not self._pieces

    def give(self, piece: bytes) -> None:
        """Have a piece written to the client, unless too much waits for it already."""
        if self.ended:
            return
        if len(self._pieces) >= _BEHIND:
            self.end(slow=True)
            return
        self._pieces.append(piece)
        self._wake.set()

    def end(self, *, slow: bool = False) -> None:
        """Write nothing more; what waits for a client that is too slow is dropped."""
        self.ended = True
        if slow:
            self.slow = True
            self._pieces.clear()
        self._wake.set()


class Followers:
    """All who follow chats of one account in this process."""

    def __init__(self, rt: Runtime, account: int, wire: Wire) -> None:
        self._rt = rt
        self._account = account
        self._wire = wire
        self._of: dict[int, set[Follower]] = {}
        """Those of each chat."""
        self._told: dict[int, int] = {}
        """The number of the last event that was given to those of a chat."""
        self._waiting: dict[Address, set[Follower]] = {}
        """Those at addresses that have no chat yet."""
        self._begun = asyncio.Semaphore(_BEGINNINGS)
        self._hinted: set[int] = set()
        self.hint = asyncio.Event()
        self._looked_at = rt.clock.monotonic() - _LOOK_EVERY
        self.leaving = asyncio.Event()
        rt.wakeups.listen(self._hear)

    def follow(self, who: Address, after: int | None, session: str, until: float) -> Follower:
        """A follower of the chat at this address, from a snapshot or from an event on."""

        async def begin(follower: Follower) -> None:
            self._rt.observer.followers.inc()
            if self.leaving.is_set():
                self._send_away(follower)
                return
            async with self._begun:
                await self._start(follower, after)
            if self.leaving.is_set():
                self._send_away(follower)  # It had no place yet when the others were sent away.

        return Follower(who, session, until, begin, self._forget)

    async def look(self) -> float:
        """Give everybody what is new: of the chats that were hinted at, and of all of them when
        that is due. Returns the seconds until then. Raises DatabaseUnavailable."""
        now = self._rt.clock.monotonic()
        due = now - self._looked_at >= _LOOK_EVERY
        hinted, self._hinted = self._hinted, set()
        of = list(self._of) if due else [chat for chat in hinted if chat in self._of]
        if due:
            self._looked_at = now
        if of or (due and self._waiting):
            await self._look_at(of, list(self._waiting) if due else [])
        return max(0.0, self._looked_at + _LOOK_EVERY - self._rt.clock.monotonic())

    async def beat(self) -> None:
        """Show everybody who has nothing else to read that the line is alive, and end those whose
        session is over. Raises DatabaseUnavailable."""
        beat = self._wire.beat
        for follower in self._all():
            if follower.idle:
                follower.give(beat)
        await self._end_over(self._all())

    def end_session(self, session: str) -> None:
        """Write nothing more to the clients of this session."""
        for follower in self._all():
            if follower.session == session:
                follower.end()

    def end_guest(self, guest: Address) -> None:
        """Write nothing more to the clients of a guest who has become a user."""
        for follower in self._all():
            if follower.who == guest:
                follower.end()

    def _all(self) -> Sequence[Follower]:
        return [f for each in (*self._of.values(), *self._waiting.values()) for f in each]

    async def _end_over(self, followers: Sequence[Follower]) -> None:
        if followers:
            asked = [(follower.who, follower.session) for follower in followers]
            over = await self._rt.db.ask(sessions.over, self._account, asked)
            now = self._rt.clock.wall()
            for follower in followers:
                if follower.session in over or follower.until <= now:
                    follower.end()

    def came(self, who: Address, chat: int) -> None:
        """The chat at this address has begun: whoever waits for it is told from its first event
        on."""
        for follower in self._waiting.pop(who, ()):
            self._enlist(follower, chat, 0)

    def leave(self) -> None:
        """Send everybody to another process, not all in one moment."""
        self.leaving.set()
        for follower in self._all():
            self._send_away(follower)

    def _send_away(self, follower: Follower) -> None:
        soonest, latest = _RETURN_WITHIN
        wait = soonest + (latest - soonest) * self._rt.clock.jitter()
        follower.give(self._wire.goodbye(wait))
        follower.end()

    def _hear(self, topic: str) -> None:
        kind, _, name = topic.partition(":")
        if kind == "chat" and name.isdecimal() and int(name) in self._of:
            self._look_soon(int(name))

    def _look_soon(self, chat: int) -> None:
        self._hinted.add(chat)
        self.hint.set()

    def _forget(self, follower: Follower) -> None:
        follower.ended = True
        self._rt.observer.followers.dec()
        if follower.slow:
            self._rt.observer.followers_cut.inc()
            _log.info("a follower of chat %s did not keep up and was cut", follower.chat)
        self._leave_place(follower)

    def _leave_place(self, follower: Follower) -> None:
        if follower.chat is None:
            there = self._waiting.get(follower.who, set())
            there.discard(follower)
            if not there:
                self._waiting.pop(follower.who, None)
            return
        followers = self._of.get(follower.chat, set())
        followers.discard(follower)
        if not followers:
            self._of.pop(follower.chat, None)
            self._told.pop(follower.chat, None)

    async def _start(self, follower: Follower, after: int | None) -> None:
        """Enlist a follower with the number from which it goes on: what was told since that was
        read comes with the next look."""
        db = self._rt.db
        if after is not None:
            chat, lacks = await db.read(moves.stands, self._account, follower.who)
            if chat is not None and lacks:
                await db.write(moves.project, chat)
            events = None if chat is None else await db.read(moves.since, chat, after)
            if chat is not None and events is not None:
                self._enlist(follower, chat, events[-1].n if events else after)
                follower.give(b"".join([self._wire.beat, *map(self._wire.event, events)]))
                return
            if chat is not None:
                follower.give(self._wire.resync)
        await self._begin_anew(follower)

    async def _begin_anew(self, follower: Follower) -> None:
        """Give a follower the chat as it is now."""
        chat = await self._rt.db.ask(chats.locate, self._account, [follower.who])
        whole = Snapshot(0) if chat is None else await self._snapshot(chat)
        if follower.ended:
            return  # Its client went meanwhile.
        follower.give(self._wire.snapshot(whole))
        if chat is None:
            self._waiting.setdefault(follower.who, set()).add(follower)
        else:
            self._enlist(follower, chat, whole.n)

    async def _snapshot(self, chat: int) -> Snapshot:
        while (whole := await self._rt.db.read(moves.snapshot, chat)) is None:
            await self._rt.db.write(moves.project, chat)
        return whole

    def _enlist(self, follower: Follower, chat: int, n: int) -> None:
        follower.chat, follower.n = chat, n
        self._of.setdefault(chat, set()).add(follower)
        # Whoever is behind the others is given what they have had already.
        self._told[chat] = min(n, self._told.get(chat, n))
        self._look_soon(chat)

    async def _look_at(self, of: Collection[int], waiting: Sequence[Address]) -> None:
        db = self._rt.db
        after = {chat: self._told[chat] for chat in of}
        found = await db.read(moves.look, self._account, after, waiting)
        await self._give_each(after, found.events)
        if found.lacking:
            locked: list[int] = []
            for first in range(0, len(found.lacking), _PROJECTED_AT_ONCE):
                some = found.lacking[first : first + _PROJECTED_AT_ONCE]
                locked += await db.write(moves.project_each, some)
            after = {c: self._told[c] for c in found.lacking if c in self._told}
            again = await db.read(moves.look, self._account, after, ())
            await self._give_each(after, again.events)
            if locked:
                loop = asyncio.get_running_loop()
                for chat in locked:
                    loop.call_later(_LOCKED_AGAIN, self._look_soon, chat)
        for who, chat in found.begun.items():
            self.came(who, chat)
        for chat in found.merged:
            await self._part(tuple(self._of.get(chat, ())))
        if found.more:
            self._looked_at -= _LOOK_EVERY
            self.hint.set()

    async def _part(self, followers: Sequence[Follower]) -> None:
        """Their chat is part of another now: whose session it is not over by that goes on there."""
        await self._end_over(followers)
        for follower in followers:
            if not follower.ended:
                self._leave_place(follower)
                follower.chat = None
                follower.give(self._wire.resync)
                try:
                    await self._begin_anew(follower)
                except DatabaseUnavailable:
                    follower.end()  # Its client comes back.
                    raise

    async def _give_each(
        self, after: Mapping[int, int], told: Mapping[int, Sequence[ChatEvent]]
    ) -> None:
        """Give the followers of each chat what is new behind these numbers: each what it lacks.
        Where numbers are missing, everybody begins anew."""
        for chat, events in told.items():
            followers, before, last = tuple(self._of.get(chat, ())), after[chat], events[-1].n
            if followers and events[0].n != before + 1:
                await self._part(followers)
                continue
            if followers and self._told[chat] >= before:
                self._told[chat] = max(self._told[chat], last)
            pieces = [self._wire.event(event) for event in events] if followers else []
            whole = b"".join(pieces)
            for follower in followers:
                had = (follower.n or 0) - before
                if 0 <= had < len(pieces):  # Behind that: it began meanwhile, the next look is its.
                    follower.give(b"".join(pieces[had:]) if had else whole)
                    follower.n = last
