"""Costs of work: CPU of processes, commits, write-ahead log and round trips."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pysqlite3.dbapi2 as sqlite3

from benchmarks.job import spread
from tests.servers import Postgres

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU that these processes and their children have used, those that have ended too."""
    children: dict[int, list[int]] = {}
    used: dict[int, tuple[float, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(entry)) is not None:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            user, system, waited_user, waited_system = (int(f) / _TICK for f in fields[11:15])
            used[int(entry.name)] = (user + system, waited_user + waited_system)
    total, left = 0.0, list(pids)
    while left:
        pid = left.pop()
        total += sum(used.get(pid, (0.0, 0.0)))
        left += children.get(pid, [])
    return total


def _stat(entry: Path) -> list[str] | None:
    """The fields of /proc/PID/stat behind the name; None when the process is gone."""
    try:
        return (entry / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def resident_bytes(pid: int) -> int:
    """Memory that a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def written_bytes() -> int:
    """Bytes that this process has written: on SQLite its log, and the file at checkpoints."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


@dataclass(slots=True)
class Counter:
    """Questions that this process asks a database: `trips` to a PostgreSQL and back, `commits`
    of a SQLite, counted below whatever asks."""

    trips: int = 0
    commits: int = 0
    _began: tuple[int, int, int] = (0, 0, 0)

    @classmethod
    def installed(cls) -> Counter:
        """A counter that sees every connection of psycopg and of pysqlite3 from now on."""
        counter = cls()
        for kind in (psycopg.Connection, psycopg.AsyncConnection):
            kind.wait = _counting(counter, kind.wait)  # type: ignore[method-assign]  # a meter
        sqlite3.connect = partial(sqlite3.connect, factory=_sqlite_counting(counter))
        return counter

    def begin(self) -> None:
        """Count from here on."""
        self._began = (self.trips, self.commits, written_bytes())

    def result(self) -> dict[str, int]:
        """The counts."""
        trips, commits, written = self._began
        return {
            "trips": self.trips - trips,
            "commits": self.commits - commits,
            "written": written_bytes() - written,
        }


def _counting(counter: Counter, wait: Any) -> Any:
    def counted(*args: Any, **kwargs: Any) -> Any:
        counter.trips += 1
        return wait(*args, **kwargs)

    return counted


def _sqlite_counting(counter: Counter) -> type[Any]:
    class Counted(sqlite3.Connection):  # type: ignore[misc]  # it has no types
        def execute(self, sql: str, *args: Any) -> Any:
            counter.commits += sql == "COMMIT"
            return super().execute(sql, *args)

    return Counted


@dataclass(slots=True)
class PostgresMeter:
    """Commits and write-ahead log of one database, from here on. The server counts a session's
    commits at its end: `read` waits until nobody is connected."""

    server: Postgres
    database: str
    _began: tuple[int, int] = field(default=(0, 0))

    def __post_init__(self) -> None:
        self._began = self._now()

    @classmethod
    def of(cls, server: Postgres, url: str) -> PostgresMeter:
        """For the database of this URL."""
        return cls(server, url.partition("?")[0].rpartition("/")[2])

    async def read(self) -> tuple[int, int]:
        """(commits, bytes of log)."""
        while self._ask("SELECT count(*) FROM pg_stat_activity WHERE datname = %s"):
            await asyncio.sleep(0.1)
        commits, log = self._now()
        return commits - self._began[0], log - self._began[1]

    def _now(self) -> tuple[int, int]:
        commits = self._ask("SELECT xact_commit FROM pg_stat_database WHERE datname = %s")
        log = self._ask("SELECT pg_current_wal_insert_lsn() - '0/0' FROM (SELECT %s) AS unused")
        return commits, log

    def _ask(self, sql: str) -> int:
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            row = connection.execute(sql, [self.database]).fetchone()
            return int(row[0]) if row else 0


_STAGES = """
SELECT runs.claimed_at - runs.created_at, outbox.created_at - runs.claimed_at,
    outbox.sent_at - outbox.created_at, runs.ended_at - outbox.sent_at
FROM runs JOIN outbox ON outbox.run = runs.id"""


def stages(url: str) -> dict[str, float]:
    """Each run's waits on its way, by the moments in its rows: from
    recorded to claimed, from there to stored, to sent, to settled."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            rows = file.execute(_STAGES).fetchall()
    else:
        with psycopg.connect(url) as connection:
            rows = connection.execute(_STAGES).fetchall()
    names = ("claimed", "stored", "sent", "settled")
    return {
        f"{name}_{rank}": value
        for name, waits in zip(names, zip(*rows, strict=True), strict=True)
        for rank, value in spread([max(0.0, wait) for wait in waits]).items()
    }
