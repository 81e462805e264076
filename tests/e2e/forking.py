"""Processes of ours that are forked from one that has imported everything.

Importing is nine tenths of what a start costs. What a fork can't show (that the installed
program starts, finds its modules and keeps its standard files) is tested with the program
itself, in `test_terminal` and `test_refusals`.
"""

from __future__ import annotations

import asyncio
import atexit
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import zlib
from asyncio import StreamReader, StreamWriter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]


@dataclass
class Forked:
    """A forked process, with as much of `asyncio.subprocess.Process` as the tests need."""

    pid: int
    stdin: StreamWriter
    stdout: StreamReader
    stderr: StreamReader
    _end: asyncio.Task[int]
    _pipes: list[asyncio.BaseTransport] = field(default_factory=list)

    @classmethod
    async def start(
        cls, *words: str, environment: dict[str, str], folder: Path, code: Path = ROOT
    ) -> Self:
        """Begin `answerback` of this code with these words, in this folder."""
        theirs_in, stdin = os.pipe()
        (stdout, theirs_out), (stderr, theirs_err), (report, reports) = (
            os.pipe() for _ in range(3)
        )
        given = (theirs_in, theirs_out, theirs_err, reports)
        order = {"words": words, "environment": environment, "folder": str(folder)}
        socket.send_fds(_ancestor(code), [json.dumps(order).encode()], given)
        for descriptor in given:
            os.close(descriptor)
        pipes: list[asyncio.BaseTransport] = []
        out, err, reported = [await _reader(n, pipes) for n in (stdout, stderr, report)]
        pid = int(await reported.readline())
        end = asyncio.create_task(_end_of(reported), name=f"end of {pid}")
        return cls(pid, await _writer(stdin, pipes), out, err, end, pipes)

    @property
    def returncode(self) -> int | None:
        return self._end.result() if self._end.done() else None

    async def wait(self) -> int:
        return await asyncio.shield(self._end)

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def close(self) -> None:
        """Let go of its pipes, once it has ended."""
        for pipe in self._pipes:
            pipe.close()


async def _end_of(reported: StreamReader) -> int:
    return os.waitstatus_to_exitcode(int(await reported.readline()))


async def _reader(descriptor: int, pipes: list[asyncio.BaseTransport]) -> StreamReader:
    reader = StreamReader()
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    pipes.append(pipe)
    return reader


async def _writer(descriptor: int, pipes: list[asyncio.BaseTransport]) -> StreamWriter:
    loop = asyncio.get_running_loop()
    pipe, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(StreamReader()), os.fdopen(descriptor, "wb")
    )
    pipes.append(pipe)
    return StreamWriter(pipe, protocol, None, loop)


@cache
def _ancestor(code: Path) -> socket.socket:
    """The socket to which orders for forks of this code go. All workers of a run have one
    ancestor, which the first of them starts."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    place = f"\0answerback-tests-{run}-{zlib.crc32(bytes(code))}"
    orders = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    while True:
        try:
            orders.connect(place)
        except ConnectionRefusedError:
            _start_ancestor(code, place)
        else:
            # What was registered last is done first: these orders end, and then the waiting.
            atexit.register(orders.close)
            return orders


def _start_ancestor(code: Path, place: str) -> None:
    """Start it, unless another worker is about to."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        try:
            door.bind(place)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return
        door.listen()
        ancestor = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.ancestor", str(door.fileno())],
            pass_fds=[door.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=code,  # which comes first where modules are looked for
            env={"PATH": os.defpath, "PYTHONPATH": f"{code}{os.pathsep}{ROOT}"},
        )
    atexit.register(ancestor.wait)
