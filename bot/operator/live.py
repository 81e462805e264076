"""Live parts: pieces of a page, sent again when they have changed.

Every few seconds a stream reads the same rows as the page itself. It ends with its session, when
its browser disconnects, and when the process shuts down: the browser then reconnects by itself, to
another process. It also ends when its session, or its address, has opened too many newer streams.
Then the page says so and reconnects only when it is asked to, so that two pages never end each
other's streams in turn.
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
"""Seconds between two looks at the rows."""
_BEAT = 15.0
"""Seconds after which something is sent even if nothing changed: proxies cut silent streams."""
_STUCK = 20.0
"""Seconds within which a browser must accept what is sent to it."""
OF_SESSION, OF_ADDRESS, AT_MOST = 8, 60, 200
"""The most streams of a process: of one session, from one address, and of all together. A hidden
tab has none."""
_COME_AGAIN_MS = 2000
Pieces = Mapping[str, str]
"""HTML by the id of the element that contains it."""
Look = Callable[[], Awaitable[Pieces]]


@dataclass
class _Shared:
    """The latest look, shared by all streams that follow the same pieces."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    pieces: Pieces | None = None
    at: float = 0.0
    followers: int = 0


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a stream: its session, and its network address. Streams are counted by each."""

    session: str
    network: str


_SESSION, _NETWORK = attrgetter("session"), attrgetter("network")


@dataclass(eq=False)
class _Opened:
    """One open stream. `displaced`: it was ended to make room for a newer one of its owner."""

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
        """End every stream, and refuse new ones."""
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
        """A stream of the pieces that `look` gives, for as long as the session lasts, to a browser
        at the address `network`. Streams with the same `shared` use one another's looks. The answer
        is a 503 if too many streams are open or the process is shutting down."""
        owner = Owner(session.id, network)
        full = len(self._open) >= AT_MOST and not self._before(owner)
        if self._leaving or full:
            wait = {"Retry-After": "2"}
            return PlainTextResponse("no more can be followed here\n", 503, headers=wait)
        return _Stream(self, session, owner, look, every, shared)

    def _before(self, owner: Owner) -> Sequence[_Opened]:
        """The streams that must end if this owner opens one more, the oldest of those that count
        against a full limit."""
        ending: list[_Opened] = []
        for whose, most in ((_SESSION, OF_SESSION), (_NETWORK, OF_ADDRESS)):
            theirs = [one for one in self._open if whose(one.owner) == whose(owner)]
            left = [one for one in theirs if one not in ending]
            if len(left) >= most:
                ending.append(left[0])
        return ending

    @contextmanager
    def opened(self, owner: Owner) -> Iterator[_Opened]:
        """Count one stream while the body runs. If the owner has too many, end its oldest."""
        for oldest in self._before(owner):
            # It is no longer counted from here on: if its browser accepts nothing, its end takes a
            # while.
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
        """The look to use while the body runs: with `shared`, one that gives the latest pieces of
        the streams of that name if they are no older than half of `every` seconds."""
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
    """A stream as an ASGI response."""

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
                return  # the browser accepts nothing; returning closes the connection
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
