"""An event stream as an answer: plain ASGI, since every open one costs memory for hours."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Scope, Send

from bot.domain.clients.desk import Follower

STUCK = 20.0
"""Seconds that a slice may take to leave; a client that reads nothing for so long comes back."""
_SLICE = 8_192
"""Bytes that are written at once: what is written is copied for each client, what waits is not."""
_UNTIL_CLOSED = 90.0
"""Seconds that the end may take to leave: the kernel gives up before on who takes nothing."""
_START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store, no-transform"),
        (b"x-accel-buffering", b"no"),
        (b"connection", b"close"),
    ],
}
"""Whoever comes back does so on another connection, which may lead to another process."""


@dataclass(frozen=True, slots=True)
class EventStream:
    """The frames that a follower gets, until either side ends it; then its `place` is another's."""

    following: AbstractAsyncContextManager[Follower]
    place: AbstractContextManager[object]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        with self.place:
            await self._answer(receive, send)

    async def _answer(self, receive: Receive, send: Send) -> None:
        async with self.following as follower:
            await send(dict(_START))
            watch = asyncio.create_task(_gone(receive, follower), name="follower")
            try:
                async for piece in follower:
                    for start in range(0, len(piece), _SLICE):
                        async with asyncio.timeout(STUCK):
                            await send(_body(piece[start : start + _SLICE], more=True))
            except TimeoutError:
                follower.end(slow=True)
            finally:
                watch.cancel()
                await asyncio.wait((watch,))
        with suppress(TimeoutError):
            async with asyncio.timeout(_UNTIL_CLOSED):
                await send(_body(b"", more=False))


async def _gone(receive: Receive, follower: Follower) -> None:
    """End the follower as its client goes."""
    while (await receive())["type"] != "http.disconnect":
        pass
    follower.end()


def _body(piece: bytes, *, more: bool) -> MutableMapping[str, Any]:
    return {"type": "http.response.body", "body": piece, "more_body": more}
