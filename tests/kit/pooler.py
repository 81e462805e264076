"""A pooler in transaction mode: clients share a few sessions of a server, a transaction each."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

_PROTOCOL = 196_608
_IDLE = b"I"


@dataclass
class _Session:
    """A connection to the server. `greeting` is what a client is told in its place."""

    reader: StreamReader
    writer: StreamWriter
    greeting: bytes = b""


@dataclass
class Pooler:
    """`url` leads through the pooler; the newest of the idle sessions is given out first."""

    url: str
    idle: asyncio.LifoQueue[_Session] = field(default_factory=asyncio.LifoQueue)

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Speak with one client until it leaves."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._talk(reader, writer)
        writer.close()

    async def _talk(self, reader: StreamReader, writer: StreamWriter) -> None:
        while await _startup(reader) != _PROTOCOL:
            writer.write(b"N")  # neither TLS nor GSS
        session = await self.idle.get()
        self.idle.put_nowait(session)
        writer.write(session.greeting)
        while True:
            kind, message = await read_message(reader)
            if kind == b"X":
                return
            session = await self.idle.get()
            try:
                status = b""
                while status != _IDLE:
                    session.writer.write(message)
                    if kind in b"QS":
                        status = await _answered(session, writer)
                    if status != _IDLE:
                        kind, message = await read_message(reader)
            finally:
                self.idle.put_nowait(session)


async def _startup(reader: StreamReader) -> int:
    (length,) = struct.unpack("!i", await reader.readexactly(4))
    body = await reader.readexactly(length - 4)
    return int.from_bytes(body[:4], "big")


async def read_message(reader: StreamReader) -> tuple[bytes, bytes]:
    """One message of the protocol: its kind, and all of its bytes."""
    kind = await reader.readexactly(1)
    length = await reader.readexactly(4)
    return kind, kind + length + await reader.readexactly(int.from_bytes(length, "big") - 4)


async def _answered(session: _Session, writer: StreamWriter) -> bytes:
    """Hand on the server's answer; the state of the session's transaction after it."""
    while True:
        kind, message = await read_message(session.reader)
        writer.write(message)
        if kind == b"Z":
            return message[-1:]


async def _opened(url: str) -> _Session:
    parts = urlsplit(url)
    where = {name: values[0] for name, values in parse_qs(parts.query).items()}
    path = f"{where['host']}/.s.PGSQL.{where.get('port', 5432)}"
    session = _Session(*await asyncio.open_unix_connection(path))
    words = ["user", where["user"], "database", parts.path[1:], "client_encoding", "UTF8", "", ""]
    body = struct.pack("!i", _PROTOCOL) + "\0".join(words[:-1]).encode() + b"\0"
    session.writer.write(struct.pack("!i", len(body) + 4) + body)
    kind = b""
    while kind != b"Z":
        kind, message = await read_message(session.reader)
        session.greeting += message
    return session


@asynccontextmanager
async def pooled(url: str, sessions: int) -> AsyncIterator[Pooler]:
    """A pooler before the database of this URL, on a port of 127.0.0.1."""
    pooler = Pooler("")
    opened = [await _opened(url) for _ in range(sessions)]
    for session in opened:
        pooler.idle.put_nowait(session)
    async with await asyncio.start_server(pooler.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        pooler.url = f"postgresql://postgres@127.0.0.1:{port}/{urlsplit(url).path[1:]}"
        yield pooler
    for session in opened:
        session.writer.close()
