"""A webhook of ours as the fakes' own tests need it: it answers what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.fakes.recording import Record, machine_time
from tests.fakes.server import Listener

EMPTY_TWIML = "<Response></Response>"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. `gate`: not before this event is set."""

    status: int = 200
    body: str = EMPTY_TWIML
    content_type: str = "text/xml"
    headers: tuple[tuple[str, str], ...] = ()
    gate: asyncio.Event | None = None


@dataclass(frozen=True, slots=True)
class Got:
    """One request: path with query, headers in lower case, raw body."""

    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Gives `replies` one after the other, and 200 when there are no more."""

    replies: tuple[Reply, ...] = ()
    got: list[Got] = field(default_factory=list)
    _record: Record = field(default_factory=lambda: Record(machine_time))

    def __post_init__(self) -> None:
        self._next: Iterator[Reply] = chain(self.replies, repeat(Reply()))
        route = Route("/{path:path}", self._answer, methods=["GET", "POST"])
        self._listener = Listener(Starlette(routes=[route]))

    @property
    def url(self) -> str:
        return self._listener.url

    async def __aenter__(self) -> Self:
        await self._listener.open()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._listener.close()

    async def arrived(self, requests: int = 1) -> None:
        """Return when so many requests have come."""
        await self._record.wait_for(lambda: len(self.got) >= requests)

    async def _answer(self, request: Request) -> Response:
        body = await request.body()
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        self.got.append(Got(target, dict(request.headers), body))
        self._record.changed()
        reply = next(self._next)
        if reply.gate is not None:
            await reply.gate.wait()
        return Response(
            reply.body, reply.status, dict(reply.headers), media_type=reply.content_type
        )
