"""Misfortunes of the servers: the database, Redis, their disk, and the machine's clock."""

from __future__ import annotations

import asyncio
import mmap
import resource
import struct
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pysqlite3.dbapi2 as sqlite3

from benchmarks.proof.disks import Disk
from tests.servers import Postgres, Stop, Valkey

NAME = "storm"
"""The database."""
_CUT = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
_PAGE = 4096
_NONSENSE = (
    b"+OK\r\n:7\r\n$-1\r\n",
    b"-ERR out of paper\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"\0" * 64,
)


@dataclass
class Clock:
    """The wall clock of all processes: `file` has the seconds that it is off."""

    file: Path

    def __post_init__(self) -> None:
        self.set(0.0)

    def set(self, off: float) -> None:
        """Set it."""
        packed = struct.pack("d", off)
        if not self.file.exists():
            self.file.write_bytes(packed)
        with self.file.open("r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
            shared[:8] = packed


class Redis:
    """A Valkey whose place a liar takes now and then."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._one_at_a_time = asyncio.Lock()

    async def empty(self) -> None:
        async with self._one_at_a_time:
            await asyncio.to_thread(self._valkey.flush)

    async def be_gone(self, seconds: float) -> None:
        async with self._one_at_a_time:
            await asyncio.to_thread(self._valkey.stop, Stop.KILL)
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self._valkey.start)

    async def talk_nonsense(self, seconds: float, how: float) -> None:
        """Let somebody else answer there, who understands nothing."""
        said = _NONSENSE[int(how * len(_NONSENSE))]

        async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(ConnectionError, asyncio.CancelledError):
                while await reader.read(4096):
                    writer.write(said)
                    await writer.drain()
            writer.close()

        async with self._one_at_a_time:
            await asyncio.to_thread(self._valkey.stop, Stop.KILL)
            self._valkey.socket.unlink(missing_ok=True)
            liar = await asyncio.start_unix_server(babble, str(self._valkey.socket))
            self._valkey.socket.chmod(0o777)
            await asyncio.sleep(seconds)
            liar.close()
            await asyncio.to_thread(self._valkey.start)


@dataclass
class PostgresOutages:
    """A PostgreSQL, and the small disk on which the storm's database stands, if there is one."""

    server: Postgres
    disk: Disk | None
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def url(self) -> str:
        return self.server.url(NAME)

    async def restart(self, seconds: float, how: float) -> None:
        """Stop it in one of its ways, and start it after so long."""
        ways = tuple(Stop)
        async with self._one_at_a_time:
            await asyncio.to_thread(self.server.stop, ways[int(how * len(ways))])
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self.server.start)

    async def cut(self) -> None:
        """End every connection."""
        async with self._one_at_a_time:
            await asyncio.to_thread(self._execute, _CUT)

    async def be_full(self, seconds: float) -> None:
        """Let there be no room; where nothing can be mounted, what a provider of databases does
        then: nobody may write."""
        async with self._one_at_a_time:
            if self.disk is not None:
                await asyncio.to_thread(self.disk.fill)
                await asyncio.sleep(seconds)
                self.disk.empty()
                return
            await asyncio.to_thread(self._read_only, "on")
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self._read_only, "off")

    def _read_only(self, word: str) -> None:
        setting = f"ALTER DATABASE {NAME} SET default_transaction_read_only = {word}"
        self._execute("SET default_transaction_read_only = off", setting, _CUT)

    def _execute(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


@dataclass
class SqliteOutages:
    """A file of SQLite, on a small disk if there is one."""

    file: Path
    disk: Disk | None
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def url(self) -> str:
        return f"sqlite:///{self.file}"

    async def be_held(self, seconds: float) -> None:
        """Another program holds the right to write for so long."""
        async with self._one_at_a_time:
            held = await asyncio.to_thread(self._hold)
            if held is not None:
                with closing(held):
                    await asyncio.sleep(seconds)

    def _hold(self) -> sqlite3.Connection | None:
        held = sqlite3.connect(
            str(self.file), isolation_level=None, timeout=10.0, check_same_thread=False
        )
        try:
            held.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            held.close()
            return None
        return held

    async def be_full(self, seconds: float, pids: Sequence[int]) -> None:
        """Let there be no room; where nothing can be mounted, none for these processes."""
        async with self._one_at_a_time:
            if self.disk is not None:
                await asyncio.to_thread(self.disk.fill)
                await asyncio.sleep(seconds)
                self.disk.empty()
                return
            _limit_files(pids, _size_of(Path(f"{self.file}-wal")) + _PAGE)
            await asyncio.sleep(seconds)
            _limit_files(pids, resource.RLIM_INFINITY)


def _size_of(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _limit_files(pids: Sequence[int], size: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
