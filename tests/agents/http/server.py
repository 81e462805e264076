"""An agent's server that misbehaves to order: it sends the bytes it is told, or nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.ports import BACKLOG


@dataclass(frozen=True)
class Asked:
    """One request as it came in; header names in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


Behaviour = bytes | None | Callable[[Asked], bytes]
"""The answer to a request: bytes, nothing ever (None), or what the function makes."""


def ok(answer: object) -> bytes:
    """200 with this JSON."""
    return response(200, json.dumps(answer).encode())


def response(status: int, body: bytes = b"", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


class FakeAgentServer:
    """Listens on a port of its own; `behaviour` may change between requests.

    Of the bytes it sends, the rest after the first part is written without end when the
    behaviour's bytes end in `ENDLESS`.
    """

    ENDLESS = b"<endless>"

    def __init__(self, behaviour: Behaviour = None) -> None:
        self.behaviour = behaviour
        self.asked: list[Asked] = []
        self.arrivals = asyncio.Semaphore(0)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=BACKLOG)
        self._port = self._server.sockets[0].getsockname()[1]
        self._peers: set[asyncio.StreamWriter] = set()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for peer in list(self._peers):
            peer.transport.abort()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/turn"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._peers.add(writer)
        try:
            while True:
                asked = await _read(reader)
                self.asked.append(asked)
                self.arrivals.release()
                await self._answer(asked, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            self._peers.discard(writer)
            writer.transport.abort()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        behaviour = self.behaviour
        if behaviour is None:
            return
        answer = behaviour(asked) if callable(behaviour) else behaviour
        writer.write(answer.removesuffix(self.ENDLESS))
        await writer.drain()
        while answer.endswith(self.ENDLESS):
            writer.write(b" " * 65_536)
            await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(head[0].split(" ")[1], headers, body)
