"""A wire to PostgreSQL that keeps an account of what went over it."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote, urlsplit

from tests.kit.pooler import read_message


@dataclass
class Exchange:
    """All of one transaction, or of one statement outside of any: what was asked, the server's
    word on each, and how often our side waited for an answer."""

    round_trips: int = 0
    asked: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def changed(self, *tables: str) -> bool:
        """Tell whether it changed rows of one of these tables."""
        return any(
            not word.endswith(" 0")
            and asked.startswith(tuple(f"{act} {table} " for act in _ACTS for table in tables))
            for asked, word in zip(self.asked, self.done, strict=True)
        )


_ACTS = ("INSERT INTO", "UPDATE", "DELETE FROM")


@dataclass
class _Line:
    """One client's connection: its prepared statements, and what is under way."""

    prepared: dict[bytes, bytes] = field(default_factory=dict)
    under_way: Exchange = field(default_factory=Exchange)

    def asks(self, kind: bytes, message: bytes) -> None:
        """Note what the client sends."""
        words = message[5:].split(b"\0")
        if kind == b"P":  # a statement's name and its SQL
            self.prepared[words[0]] = words[1]
        elif kind == b"B":  # a portal's name and the statement's
            self.under_way.asked.append(" ".join(self.prepared[words[1]].decode().split()[:4]))
        elif kind == b"Q":
            self.under_way.asked += words[0].decode().split("; ")


@dataclass
class Wire:
    """`url` leads over the wire, whose `exchanges` are over."""

    url: str = ""
    exchanges: list[Exchange] = field(default_factory=list)

    async def carry(self, to: str, reader: StreamReader, writer: StreamWriter) -> None:
        """Connect one client with the server until either leaves."""
        answers, asks = await asyncio.open_unix_connection(to)
        line = _Line()
        async with asyncio.TaskGroup() as both:
            both.create_task(_pass_on(line, reader, asks))
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._bring_back(line, answers, writer)
        writer.close()
        asks.close()

    async def _bring_back(self, line: _Line, answers: StreamReader, writer: StreamWriter) -> None:
        while True:
            kind, answer = await read_message(answers)
            if kind == b"C":
                line.under_way.done.append(answer[5:-1].decode())
            elif kind == b"Z":
                line.under_way.round_trips += 1
                if answer[-1:] == b"I":
                    self.exchanges.append(line.under_way)
                    line.under_way = Exchange()
            writer.write(answer)


async def _pass_on(line: _Line, reader: StreamReader, asks: StreamWriter) -> None:
    """Hand on what the client asks until it leaves, and leave then."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        asks.write(size := await reader.readexactly(4))
        asks.write(await reader.readexactly(int.from_bytes(size, "big") - 4))
        while True:
            kind, message = await read_message(reader)
            line.asks(kind, message)
            asks.write(message)
    asks.close()


@asynccontextmanager
async def wired(url: str, folder: str) -> AsyncIterator[Wire]:
    """A wire to the database of this URL, with its end in this folder."""
    parts, wire = urlsplit(url), Wire()
    where = {name: values[0] for name, values in parse_qs(parts.query).items()}
    name = f".s.PGSQL.{where.get('port', 5432)}"
    carried: dict[StreamWriter, asyncio.Task[None]] = {}

    def carry(reader: StreamReader, writer: StreamWriter) -> None:
        carrying = wire.carry(f"{where['host']}/{name}", reader, writer)
        carried[writer] = asyncio.create_task(carrying, name="wire")

    async with await asyncio.start_unix_server(carry, f"{folder}/{name}"):
        wire.url = url.replace(quote(where["host"], safe="/"), quote(folder, safe="/"))
        yield wire
        for writer in carried:
            writer.close()
        await asyncio.gather(*carried.values())
