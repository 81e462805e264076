"""Commands of an operator: the CPU that each costs, its start included."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.report import Figures, progress
from benchmarks.scale import Scale
from benchmarks.stage import Servers

HELP = ("--version", "--help", "runs --help", "runs list --help")
READING = (
    "status REQUEST",
    "runs list",
    "runs show 1",
    "runs why 1",
    "outbox list",
    "letters list",
    "chats list",
    "chats show 1",
    "stuck --offline",
    "top --once",
    "webhook info",
    "db current",
    "doctor",
)
"""Every command that only reads and asks no platform."""
_PROGRAM = str(Path(sys.executable).with_name("answerback"))


async def commands(_servers: Servers, scale: Scale) -> Figures:
    """Seconds of CPU of each command on a database of SQLite with one answered message: the least
    of some calls, since whoever else is at work makes a call dearer and none cheaper."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/answerback.db"
        request = await asyncio.to_thread(_answered, url)
        found: Figures = {}
        for kind, calls in (("help", HELP), ("reading", READING)):
            found[kind] = {}
            for call in calls:
                words = call.replace("REQUEST", request)
                used = [
                    await asyncio.to_thread(_cpu_seconds, words, url) for _ in range(scale.calls)
                ]
                found[kind][call] = min(used)
            told = ", ".join(f"{call} {seconds:.2f}" for call, seconds in found[kind].items())
            progress(f"commands, s of CPU: {told}")
    return found


def _answered(url: str) -> str:
    """The request id of a message that was written in the terminal, and answered."""
    environment = {**_environment(url), "AGENT": "echo"}
    subprocess.run(
        [_PROGRAM, "chat"], input=b"hello\n", env=environment, check=True, capture_output=True
    )
    listed = subprocess.run(
        [_PROGRAM, "runs", "list", "--json"], env=environment, check=True, capture_output=True
    )
    [run] = json.loads(listed.stdout)
    return str(run["request_id"])


def _cpu_seconds(call: str, url: str) -> float:
    """User and system time of one command, which is told nothing but its database."""
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    process = os.posix_spawn(
        _PROGRAM, [_PROGRAM, *call.split()], _environment(url), file_actions=quiet
    )
    _, _, used = os.wait4(process, 0)
    return used.ru_utime + used.ru_stime


def _environment(url: str) -> dict[str, str]:
    return {"DATABASE_URL": url, "PATH": os.defpath}
