"""Commands of an operator: the CPU that each costs, its start included."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.report import Figures, progress
from benchmarks.scale import Scale
from benchmarks.stage import Servers

HELP = ("--version", "--help", "runs --help", "runs list --help")
READING = (
    "status tg-1-1",
    "runs list",
    "outbox list",
    "chats list",
    "stuck --offline",
    "top --once",
    "doctor",
)


async def commands(_servers: Servers, scale: Scale) -> Figures:
    """Seconds of CPU of each command on an empty database of SQLite: the least of some calls, since
    whoever else is at work makes a call dearer and none cheaper."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/answerback.db"
        await asyncio.to_thread(_cpu_seconds, "db upgrade", url)
        found: Figures = {}
        for kind, calls in (("help", HELP), ("reading", READING)):
            found[kind] = {
                call: min(
                    [await asyncio.to_thread(_cpu_seconds, call, url) for _ in range(scale.calls)]
                )
                for call in calls
            }
            told = ", ".join(f"{call} {seconds:.2f}" for call, seconds in found[kind].items())
            progress(f"commands, s of CPU: {told}")
    return found


def _cpu_seconds(call: str, url: str) -> float:
    """User and system time of one command, which is told nothing but its database."""
    program = str(Path(sys.executable).with_name("answerback"))
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    environment = {"DATABASE_URL": url, "PATH": os.defpath}
    process = os.posix_spawn(program, [program, *call.split()], environment, file_actions=quiet)
    _, _, used = os.wait4(process, 0)
    return used.ru_utime + used.ru_stime
