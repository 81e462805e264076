"""A server process in scratch folders of its own, which a watchdog ends with its starter."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Self

from tests.limits import PATIENCE
from tests.ports import own_port

SOCKET_PATH_LIMIT = 107
MEMORY_DISK = Path("/dev/shm")
MEMORY_NEEDED = 1 << 30

# Reads the server's pid (an empty line: it was stopped in order). The end of its input is the
# death of whoever started it: then it ends the server and removes the folder.
_WATCHDOG = """
while read -r line; do pid=$line; done
[ -z "$pid" ] || kill -s "$1" "$pid"
tries=0
while [ -n "$pid" ] && kill -0 "$pid" && [ $tries -lt 100 ]; do
    tries=$((tries + 1)); sleep 0.1
done
shift
rm -rf -- "$@"
"""


class ServerUnavailable(RuntimeError):
    """No usable server program on this machine; the text says what to install."""


class ServerFailed(RuntimeError):
    """The server ended, or was not ready in time; the text is the end of its log."""


class Stop(StrEnum):
    """A way for a server to end. `KILL` is SIGKILL: nothing is cleaned up, as after a crash."""

    GRACEFUL = "graceful"
    IMMEDIATE = "immediate"
    KILL = "kill"


class Server(ABC):
    """One process that can be started, stopped and started again on its folder, then closed."""

    signals: ClassVar[dict[Stop, signal.Signals]]

    def __init__(self, *, tcp: bool, in_memory: bool) -> None:
        self.port = own_port() if tcp else 0
        self.folder = _scratch_folder()
        self.data_folder = _memory_folder() if in_memory else self.folder
        self._account: pwd.struct_passwd | None = None
        self._process: subprocess.Popen[bytes] | None = None
        ending = self.signals[Stop.IMMEDIATE].name.removeprefix("SIG")
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG, "watchdog", ending, self.folder, self.data_folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    @abstractmethod
    def command(self) -> Sequence[str | Path]: ...

    @abstractmethod
    def is_ready(self) -> bool: ...

    @property
    def pid(self) -> int:
        """Raises ServerFailed when it is not running."""
        if self._process is None or self._process.poll() is not None:
            raise ServerFailed("the server is not running")
        return self._process.pid

    @property
    def watchdog_pid(self) -> int:
        return self._watchdog.pid

    def start(self) -> Self:
        """Start, and return when it takes connections. Raises ServerFailed."""
        self._process = self._spawn(self.command())
        self._guard(self._process.pid)
        deadline = time.monotonic() + PATIENCE
        while not self.is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop(Stop.KILL)
                raise ServerFailed(self.log()[-1000:])
            time.sleep(0.005)  # noqa: TID251 - another program's start gives no event
        return self

    def stop(self, how: Stop = Stop.GRACEFUL) -> None:
        """Stop and wait for the end. Does nothing to a server that isn't running."""
        if self._process is not None:
            self._process.send_signal(self.signals[how])
            self._guard(None)
            self._process.wait(PATIENCE)
            self._process = None

    def ensure_running(self) -> None:
        """Start it if a test left it stopped."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def restart(self, how: Stop = Stop.GRACEFUL) -> None:
        self.stop(how)
        self.start()

    def close(self) -> None:
        """Stop, and remove the folder."""
        self.stop(Stop.IMMEDIATE)
        self._watchdog.communicate()

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def __enter__(self) -> Self:
        try:
            return self.start()
        except ServerFailed:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def _spawn(self, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
        account = self._account
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                user=account and account.pw_uid,
                group=account and account.pw_gid,
                extra_groups=account and [],
            )

    def _guard(self, pid: int | None) -> None:
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(f"{pid or ''}\n".encode())
        self._watchdog.stdin.flush()


def _scratch_folder() -> Path:
    """A private folder whose sockets have short enough paths and that every user may reach."""
    usual = Path(tempfile.gettempdir())
    short = len(bytes(usual)) < SOCKET_PATH_LIMIT - len("/answerback-XXXXXXXX/.s.PGSQL.65535")
    open_to_all = all(folder.stat().st_mode & 0o001 for folder in (usual, *usual.parents))
    base = usual if short and open_to_all else Path("/tmp")
    return Path(tempfile.mkdtemp(prefix="answerback-", dir=base))


def memory_disk() -> Path | None:
    """A folder that no disk slows down, where the machine has room in one."""
    try:
        roomy = shutil.disk_usage(MEMORY_DISK).free >= MEMORY_NEEDED
    except FileNotFoundError:
        return None
    return MEMORY_DISK if roomy and os.access(MEMORY_DISK, os.W_OK) else None


def _memory_folder() -> Path:
    """A private folder, in memory if possible: copying a template database is its three hundred
    files, twenty times faster there."""
    disk = memory_disk()
    return Path(tempfile.mkdtemp(prefix="answerback-", dir=disk)) if disk else _scratch_folder()


def wheel_folder(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    return Path("/absent") if spec is None or spec.origin is None else Path(spec.origin).parent
