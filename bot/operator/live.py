"""Live parts: pieces of a page, sent again when they have changed.

A stream looks at rows as the page itself did, every few seconds. It ends with its session, with
its browser, and when the process leaves: a browser comes again by itself, to whichever is there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

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
_AT_MOST = 200
"""Streams of a process."""
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


@dataclass
class Streams:
    """The open streams of a process."""

    sessions: Sessions
    clock: Clock
    _open: set[asyncio.Event] = field(default_factory=set)
    _leaving: bool = False
    _shared: dict[Hashable, _Shared] = field(default_factory=dict)

    def leave(self) -> None:
        """End every stream, and begin none."""
        self._leaving = True
        for over in self._open:
            over.set()

    def follow(
        self, session: SignedIn, look: Look, every: float = EVERY, shared: Hashable = None
    ) -> ASGIApp:
        """A stream of what `look` shows, for as long as the session goes on. With `shared`, who
        follows under the same name sees the look of the others."""
        if self._leaving or len(self._open) >= _AT_MOST:
            wait = {"Retry-After": "2"}
            return PlainTextResponse("no more can be followed here\n", 503, headers=wait)
        return _Stream(self, session, look, every, shared)

    @contextmanager
    def opened(self) -> Iterator[asyncio.Event]:
        """An event that ends a stream."""
        over = asyncio.Event()
        self._open.add(over)
        try:
            yield over
        finally:
            self._open.discard(over)

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
    look: Look
    every: float
    shared: Hashable

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.streams.opened() as over:
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
            watch = asyncio.create_task(_gone(receive, over), name="operator's stream")
            try:
                await self._send(send, f"retry: {_COME_AGAIN_MS}\n\n")
                with self.streams.looks(self.look, self.every, self.shared) as look:
                    await self._tell(send, over, look)
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
