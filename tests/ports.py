"""Ports of 127.0.0.1 for servers that are told which one to take."""

from __future__ import annotations

import socket

BACKLOG = 1024
"""Connections that a server of the tests may be slow to take. Beyond them the kernel drops, and
callers come to the end of their patience."""

_kept: list[socket.socket] = []


def held_port(port: int = 0) -> socket.socket:
    """A port that nobody else is given as long as this socket is open.

    Nobody listens there: connecting is refused until a server takes it, and after that server.
    """
    holder = socket.socket()
    # With this on both sides a server may bind beside a socket that does not listen.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", port))
    return holder


def own_port() -> int:
    """A port that is this process's until it ends."""
    _kept.append(held_port())
    number: int = _kept[-1].getsockname()[1]
    return number
