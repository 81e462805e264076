"""An event stream as an answer: plain ASGI, since every open one costs memory for hours."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Scope, Send

from bot.domain.clients import Follower

STUCK = 20.0
"""Seconds that one piece may take to leave; a client that reads nothing for so long comes back."""
_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
}


@dataclass(frozen=True, slots=True)
class EventStream:
    """What a follower is told, until either side ends it."""

    following: AbstractAsyncContextManager[Follower]
    headers: Mapping[str, str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        async with self.following as follower:
            await send(_start(self.headers))
            watch = asyncio.create_task(_gone(receive, follower), name="follower")
            try:
                async for piece in follower:
                    async with asyncio.timeout(STUCK):
                        await send(_body(piece, more=True))
            except TimeoutError:
                follower.end(slow=True)
            else:
                if not follower.slow:
                    await send(_body(b"", more=False))
            finally:
                watch.cancel()
                with suppress(asyncio.CancelledError):
                    await watch


async def _gone(receive: Receive, follower: Follower) -> None:
    """End the follower as its client goes."""
    while (await receive())["type"] != "http.disconnect":
        pass
    follower.end()


def _start(further: Mapping[str, str]) -> MutableMapping[str, Any]:
    headers = [(k.encode(), v.encode()) for k, v in {**_HEADERS, **further}.items()]
    return {"type": "http.response.start", "status": 200, "headers": headers}


def _body(piece: bytes, *, more: bool) -> MutableMapping[str, Any]:
    return {"type": "http.response.body", "body": piece, "more_body": more}
