"""Followers that stand still: they read nothing, or no packet reaches them any more."""

from __future__ import annotations

import asyncio
import ctypes
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress

import httpx

from tests.kit.web import API, Following, Visitor
from tests.limits import until

_ATTACH_FILTER = 26
_TAKE_NOTHING = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
"""A packet filter of one instruction."""


@asynccontextmanager
async def standing_still(visitor: Visitor, count: int) -> AsyncIterator[Sequence[socket.socket]]:
    """Streams that are asked for and answered, and of which nothing is read."""
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(count)]
        for client in clients:
            await _ask(client, visitor)
        await until(lambda: all(map(_is_answered, clients)))
        yield clients


async def _ask(client: socket.socket, visitor: Visitor) -> None:
    address = httpx.URL(visitor.url)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, (address.host, address.port))
    asked = f"GET {API}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {visitor.token}\r\n\r\n"
    await loop.sock_sendall(client, asked.encode())


def _is_answered(client: socket.socket) -> bool:
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def drop_packets(client: socket.socket) -> None:
    """From now on no packet reaches this client: it acknowledges nothing, and resets nothing."""
    program = struct.pack("HL", 1, ctypes.addressof(_TAKE_NOTHING))
    client.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)


async def thawed(client: socket.socket) -> Following:
    """Everything that a client finds that reads on, to the end of its stream."""
    loop, read = asyncio.get_running_loop(), b""
    with suppress(ConnectionResetError):
        while data := await loop.sock_recv(client, 1 << 20):
            read += data
    rest, body = read.partition(b"\r\n\r\n")[2], b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size or b"0", 16)
        body, rest = body + rest[:length], rest[length + 2 :]
    following = Following(over=True)
    for block in body.decode(errors="replace").split("\n\n")[:-1]:  # The last one may be cut.
        following.read(block)
    return following
