"""A line between a client and servers of ours: it may be held, so that nothing passes and nobody
is told, or cut."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from tests.ports import BACKLOG


@dataclass
class Line:
    """Leads each connection to the first of `places` that takes it: a port of this machine, or
    the path of a socket."""

    places: Sequence[int | str]
    port: int = 0
    lines: int = 0
    """Connections so far."""
    _flows: asyncio.Event = field(default_factory=asyncio.Event)
    _open: set[StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def hold(self) -> None:
        """Let nothing through, and reset nothing: as a peer that is frozen, or gone."""
        self._flows.clear()

    def release(self) -> None:
        """Let what waits through, and go on."""
        self._flows.set()

    def cut(self) -> None:
        """Reset every connection."""
        for writer in list(self._open):
            writer.transport.abort()

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Carry both directions of one connection."""
        self.lines += 1
        self._open.add(writer)
        beyond: StreamWriter | None = None
        try:
            with suppress(OSError):
                await self._flows.wait()
                answers, beyond = await self._reach()
                self._open.add(beyond)
                tasks = [
                    asyncio.create_task(self._carry(*ends), name="line")
                    for ends in ((reader, beyond), (answers, writer))
                ]
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            for end in (writer, beyond):
                if end is not None:
                    self._open.discard(end)
                    end.transport.abort()

    async def _reach(self) -> tuple[StreamReader, StreamWriter]:
        for place in self.places:
            with suppress(OSError):
                if isinstance(place, str):
                    return await asyncio.open_unix_connection(place)
                return await asyncio.open_connection("127.0.0.1", place)
        raise ConnectionRefusedError

    async def _carry(self, reader: StreamReader, writer: StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._flows.wait()
            writer.write(data)
            await writer.drain()
        await writer.drain()
        writer.write_eof()


@asynccontextmanager
async def line_to(*places: int | str) -> AsyncIterator[Line]:
    """A line to these places, through which everything passes."""
    line = Line(places)
    line.release()
    serving: set[asyncio.Task[None]] = set()

    def take(reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.create_task(line.serve(reader, writer), name="line")
        serving.add(task)
        task.add_done_callback(serving.discard)

    async with await asyncio.start_server(take, "127.0.0.1", 0, backlog=BACKLOG) as server:
        line.port = server.sockets[0].getsockname()[1]
        yield line
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
