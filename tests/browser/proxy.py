"""A proxy between a browser and our processes: it keeps an account, and fails to order.

It serves the page itself, from its own memory, so that a page opens also when nothing behind it
answers. One request is one connection to a process, so that each fails by itself.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import urlsplit

PAGE = """<!doctype html><html lang="{lang}"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Shop</title>
<link rel="icon" href="data:,">
<body><h1>Shop</h1>{scripts}<script src="/web/answerback.js"></script></body></html>"""


class How(Enum):
    """The fate of a request."""

    RESET = auto()
    """The connection is reset before anything is passed on."""
    LOST = auto()
    """It is passed on, and its answer is lost."""
    SILENT = auto()
    """It is taken and nothing ever comes back."""
    CUT = auto()
    """The answer ends in the middle of its first event."""


@dataclass
class Asked:
    """A request as it came: its line, its headers, its body, and the status that went back."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    status: int = 0

    @property
    def line(self) -> str:
        return f"{self.method} {self.target}"

    def is_for(self, line: str) -> bool:
        """Tell whether it is `GET /web/v1/events` and the like, given without the prefix."""
        method, _, path = line.partition(" ")
        return self.method == method and urlsplit(self.target).path.startswith(f"/web/v1/{path}")


@dataclass
class Plan:
    """The fate of the next requests of this kind, one after the other: a way to fail, or
    the answer that is given in our place."""

    line: str
    turns: list[How | bytes]


@dataclass
class Proxy:
    """`url` is where the page is. While `shut`, nothing but the page comes through."""

    behind: str = ""
    url: str = ""
    page: str = PAGE
    headers: dict[str, str] = field(default_factory=dict)
    """Further headers of the page."""
    scripts: str = ""
    lang: str = "en"
    shut: bool = False
    asked: list[Asked] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    _open: set[StreamWriter] = field(default_factory=set)
    _copy: bytes = b""

    def will(self, line: str, *turns: How | bytes) -> None:
        """Plan what becomes of the next requests of this kind."""
        self.plans.append(Plan(line, list(turns)))

    def lines(self, line: str) -> list[Asked]:
        """The requests of this kind so far."""
        return [asked for asked in self.asked if asked.is_for(line)]

    def cut(self) -> None:
        """Reset every open connection."""
        for writer in list(self._open):
            _reset(writer)

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Take one request of a browser."""
        self._open.add(writer)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                asked = await _read(reader)
                self.asked.append(asked)
                await self._answer(asked, writer)
                writer.close()
                await writer.wait_closed()
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _answer(self, asked: Asked, writer: StreamWriter) -> None:
        path = urlsplit(asked.target).path
        if path == "/web/answerback.js":
            self._copy = self._copy or await self._fetched(asked)
            writer.write(self._copy)
        elif not path.startswith("/web/"):
            page = self.page.format(lang=self.lang, scripts=self.scripts)
            writer.write(answer(200, page, "text/html; charset=utf-8", **self.headers))
        elif self.shut:
            _reset(writer)
        else:
            await self._pass_on(asked, writer, self._turn(asked))

    def _turn(self, asked: Asked) -> How | bytes | None:
        plan = next((p for p in self.plans if p.turns and asked.is_for(p.line)), None)
        return plan.turns.pop(0) if plan else None

    async def _pass_on(self, asked: Asked, writer: StreamWriter, turn: How | bytes | None) -> None:
        if isinstance(turn, bytes):
            asked.status = int(turn.split()[1])
            writer.write(turn)
            return
        if turn is How.SILENT:
            await asyncio.Event().wait()
        if turn is How.RESET or not self.behind:
            _reset(writer)
            return
        async with self._behind(asked) as answers:
            head = await answers.readuntil(b"\r\n\r\n")
            asked.status = int(head.split()[1])
            if turn is How.LOST:
                await answers.read()
                _reset(writer)
                return
            writer.write(head)
            while chunk := await answers.read(65536):
                if turn is How.CUT:
                    writer.write(chunk[: chunk.find(b"data:") + 20])
                    await writer.drain()
                    return
                writer.write(chunk)
                await writer.drain()

    @asynccontextmanager
    async def _behind(self, asked: Asked) -> AsyncIterator[StreamReader]:
        place = urlsplit(self.behind)
        answers, asks = await asyncio.open_connection(place.hostname, place.port)
        self._open.add(asks)
        try:
            headers = {**asked.headers, "connection": "close"}
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            asks.write(f"{asked.line} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + asked.body)
            yield answers
        finally:
            self._open.discard(asks)
            asks.transport.abort()

    async def _fetched(self, asked: Asked) -> bytes:
        async with self._behind(asked) as answers:
            return await answers.read()


async def _read(reader: StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.strip().split("\r\n")
    method, target, _ = line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (r.partition(":") for r in rest)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(method, target, headers, body)


def answer(status: int, body: str = "", kind: str = "text/plain", **headers: str) -> bytes:
    """The bytes of an answer. An underscore in a header's name stands for a hyphen."""
    content = body.encode()
    fields = {"Content-Type": kind, "Content-Length": str(len(content)), "Connection": "close"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} So\r\n{head}\r\n".encode() + content


def _reset(writer: StreamWriter) -> None:
    """End a connection as a dead peer does, not as one that is done."""
    if (sock := writer.get_extra_info("socket")) is not None:
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def open_proxy() -> AsyncIterator[Proxy]:
    """A proxy on a port of its own, with nothing behind it yet."""
    proxy = Proxy()
    serving: set[asyncio.Task[None]] = set()

    def take(reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.create_task(proxy.serve(reader, writer), name="proxy")
        serving.add(task)
        task.add_done_callback(serving.discard)

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield proxy
        proxy.shut = True
        proxy.cut()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
