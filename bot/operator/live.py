"""Live parts: pieces of a page, sent again when they have changed.

A stream looks at rows as the page itself did, every few seconds. It ends with its session, with
its browser, and when the process leaves: a browser comes again by itself, to whichever is there.
It ends too where its operator, or its address, has opened many since: the page says so, and comes
again when it is asked to, so that two pages never take turns in ending each other.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from operator import attrgetter

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.domain.errors import DatabaseUnavailable
from bot.domain.ports import Clock
from bot.operator.sessions import Sessions, SignedIn

EVERY = 2.0
"""Seconds between two looks."""
_BEAT = 15.0
"""Seconds after which something is sent even if nothing changed: proxies cut silent streams."""
_STUCK = 20.0
"""Seconds that a piece may take to leave."""
OF_SESSION, OF_ADDRESS, AT_MOST = 8, 60, 200
"""Streams of a process that one session has, those that come from one address, and all of them.
A tab that nobody sees has none."""
_COME_AGAIN_MS = 2000
Pieces = Mapping[str, str]
"""HTML by the id of the element that it stands in."""
Look = Callable[[], Awaitable[Pieces]]


@dataclass
class _Shared:
    """The last look of all who follow the same."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    pieces: Pieces | None = None
    at: float = 0.0
    followers: int = 0


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a stream: its session, and the address that is counted."""

    session: str
    network: str


_SESSION, _NETWORK = attrgetter("session"), attrgetter("network")


@dataclass(eq=False)
class _Opened:
    """One open stream. `displaced`: it is over because its owner has opened others since."""

    owner: Owner
    over: asyncio.Event = field(default_factory=asyncio.Event)
    displaced: bool = False


@dataclass
class Streams:
    """The open streams of a process, oldest first."""

    sessions: Sessions
    clock: Clock
    _open: list[_Opened] = field(default_factory=list)
    _leaving: bool = False
    _shared: dict[Hashable, _Shared] = field(default_factory=dict)

    def leave(self) -> None:
        """End every stream, and begin none."""
        self._leaving = True
        for one in self._open:
            one.over.set()

    def follow(
        self,
        session: SignedIn,
        network: str,
        look: Look,
        every: float = EVERY,
        shared: Hashable = None,
    ) -> ASGIApp:
        """A stream of what `look` shows, for as long as the session goes on, to a browser at this
        address. With `shared`, who follows under the same name sees the look of the others."""
        owner = Owner(session.id, network)
        full = len(self._open) >= AT_MOST and not self._before(owner)
        if self._leaving or full:
            wait = {"Retry-After": "2"}
            return PlainTextResponse("no more can be followed here\n", 503, headers=wait)
        return _Stream(self, session, owner, look, every, shared)

    def _before(self, owner: Owner) -> Sequence[_Opened]:
        """Those that end when this owner opens one more."""
        ending: list[_Opened] = []
        for whose, most in ((_SESSION, OF_SESSION), (_NETWORK, OF_ADDRESS)):
            theirs = [one for one in self._open if whose(one.owner) == whose(owner)]
            left = [one for one in theirs if one not in ending]
            if len(left) >= most:
                ending.append(left[0])
        return ending

    @contextmanager
    def opened(self, owner: Owner) -> Iterator[_Opened]:
        """A stream that is counted, in the place of the owner's oldest where that has many."""
        for oldest in self._before(owner):
            # It counts no more, even if its browser takes nothing and it takes a while to end.
            self._open.remove(oldest)
            oldest.displaced = True
            oldest.over.set()
        one = _Opened(owner)
        self._open.append(one)
        try:
            yield one
        finally:
            if not one.displaced:
                self._open.remove(one)

    @contextmanager
    def looks(self, look: Look, every: float, shared: Hashable) -> Iterator[Look]:
        """A look, or another one's that is no older than half of `every` seconds."""
        if shared is None:
            yield look
            return
        kept = self._shared.setdefault(shared, _Shared())
        kept.followers += 1

        async def seen() -> Pieces:
            async with kept.lock:
                if kept.pieces is None or self.clock.monotonic() - kept.at > every / 2:
                    kept.pieces = await look()
                    kept.at = self.clock.monotonic()
                return kept.pieces

        try:
            yield seen
        finally:
            kept.followers -= 1
            if not kept.followers:
                del self._shared[shared]


@dataclass(frozen=True, slots=True)
class _Stream:
    """One open stream as an answer."""

    streams: Streams
    session: SignedIn
    owner: Owner
    look: Look
    every: float
    shared: Hashable

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.streams.opened(self.owner) as one:
            await send(
                {
                    "type": "http.response.start",
                    "status": 200,
                    "headers": [
                        (b"content-type", b"text/event-stream; charset=utf-8"),
                        (b"cache-control", b"no-store, no-transform"),
                        (b"x-accel-buffering", b"no"),
                    ],
                }
            )
            watch = asyncio.create_task(_gone(receive, one.over), name="operator's stream")
            try:
                await self._send(send, f"retry: {_COME_AGAIN_MS}\n\n")
                with self.streams.looks(self.look, self.every, self.shared) as look:
                    await self._tell(send, one.over, look)
                if one.displaced:
                    await self._send(send, "event: displaced\ndata: {}\n\n")
            except TimeoutError:
                return  # It takes nothing: the connection ends with us.
            finally:
                watch.cancel()
                await asyncio.wait((watch,))
            with suppress(TimeoutError):
                await self._send(send, "", more=False)

    async def _tell(self, send: Send, over: asyncio.Event, look: Look) -> None:
        told: dict[str, str] = {}
        quiet = 0.0
        while not over.is_set():
            try:
                if not await self.streams.sessions.goes_on(self.session):
                    await self._send(send, "event: over\ndata: {}\n\n")
                    return
                seen = await look()
            except DatabaseUnavailable:
                await self._send(send, "event: away\ndata: {}\n\n")
            else:
                news = {name: html for name, html in seen.items() if told.get(name) != html}
                if news:
                    told |= news
                    await self._send(send, f"event: pieces\ndata: {json.dumps(news)}\n\n")
                    quiet = 0.0
                elif quiet >= _BEAT:
                    await self._send(send, ":\n\n")
                    quiet = 0.0
            quiet += self.every
            with suppress(TimeoutError):
                async with asyncio.timeout(self.every):
                    await over.wait()

    @staticmethod
    async def _send(send: Send, text: str, *, more: bool = True) -> None:
        async with asyncio.timeout(_STUCK):
            await send({"type": "http.response.body", "body": text.encode(), "more_body": more})


async def _gone(receive: Receive, over: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    over.set()
