"""How a transaction is run.

A transaction is a plain function of a connection and values: it can't wait for anything but
the database, so none is ever open while an agent thinks or a message is sent. It has no
effect but its statements, because it may run twice: once more when the connection broke or
the database chose it as a deadlock's victim before it could commit.

PostgreSQL: a pool of connections, each used by one thread at a time. SQLite: one writer
thread that takes what is queued, most urgent first, runs each function in a savepoint and
commits them together (one fsync for all that wait), and a few readers beside it. On both,
the lease has a lane of its own, so that renewing never waits behind work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError

from bot.domain.errors import ConfigurationError
from bot.domain.ports import Clock
from storage.engine import postgres, sqlite
from storage.engine.sqlite_writer import SqliteWriter, Urgency

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """Where the database is. `pool` bounds connections for work (the lease has one more); a
    transaction that takes more than `patience` seconds is given up on PostgreSQL."""

    url: str
    pool: int = 8
    pool_wait: float = 30.0
    patience: int = 10


def parsed_url(url: str) -> URL:
    """DATABASE_URL as SQLAlchemy reads it, with our driver. Raises ConfigurationError."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigurationError(
            "DATABASE_URL can't be read; use sqlite:///data/answerback.db "
            "or postgresql://user:password@host/database"
        ) from error
    match parsed.get_backend_name():
        case "sqlite":
            if not parsed.database or parsed.database == ":memory:":
                raise ConfigurationError(
                    "DATABASE_URL names no SQLite file; use sqlite:///relative.db "
                    "or sqlite:////absolute.db"
                )
            return parsed.set(drivername="sqlite")
        case "postgresql" | "postgres":
            return parsed.set(drivername="postgresql+psycopg")
        case other:
            raise ConfigurationError(
                f"DATABASE_URL uses {other!r}; Answerback speaks sqlite and postgresql"
            )


class _Lanes(Protocol):
    """How one kind of database runs transactions."""

    async def write(self, job: Callable[[Connection], T], urgency: Urgency) -> T: ...

    async def read(self, job: Callable[[Connection], T]) -> T: ...

    def write_sync(self, job: Callable[[Connection], T]) -> T: ...

    def close(self) -> None: ...


class Database:
    """Runs transactions. Raises DatabaseUnavailable when the database does not answer."""

    def __init__(self, settings: DatabaseSettings, clock: Clock) -> None:
        self.url = parsed_url(settings.url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.on_wait: Callable[[float], object] = _unheard
        self._monotonic = clock.monotonic
        self._lanes: _Lanes = (
            _SqliteLanes(self.url, clock) if self.is_sqlite else _PostgresLanes(self.url, settings)
        )

    async def write(
        self, move: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `move` in a transaction and commit it."""
        job = self._waited(partial(_bound, move, args, kwargs))
        return await self._lanes.write(job, Urgency.WORK)

    async def read(
        self, question: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `question`, which changes nothing, on one snapshot."""
        return await self._lanes.read(self._waited(partial(_bound, question, args, kwargs)))

    async def renew(
        self, move: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `move` in the lease's own lane, before all waiting work."""
        return await self._lanes.write(partial(_bound, move, args, kwargs), Urgency.LEASE)

    def now_sync(
        self, move: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `move` on this thread and commit it: for programs without an event loop."""
        return self._lanes.write_sync(partial(_bound, move, args, kwargs))

    def _waited(self, job: Callable[[Connection], T]) -> Callable[[Connection], T]:
        """The job, which tells `on_wait` for how many seconds it waited to begin."""
        asked = self._monotonic()

        def begin(tx: Connection) -> T:
            self.on_wait(self._monotonic() - asked)
            return job(tx)

        return begin

    def close(self) -> None:
        """Finish what is queued and let go of every connection."""
        self._lanes.close()


def _unheard(_seconds: float) -> None:
    """Nobody measures."""


def _bound(
    move: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], tx: Connection
) -> T:
    return move(tx, *args, **kwargs)


async def _in_thread(pool: ThreadPoolExecutor, job: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, job)


class _SqliteLanes:
    def __init__(self, url: URL, clock: Clock) -> None:
        self._engine = sqlite.open_engine(url, clock)
        self._writer = SqliteWriter(self._engine, clock.monotonic)
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="db-read")

    async def write(self, job: Callable[[Connection], T], urgency: Urgency) -> T:
        return await self._writer.submit(job, urgency)

    async def read(self, job: Callable[[Connection], T]) -> T:
        return await _in_thread(self._readers, partial(sqlite.read, self._engine, job))

    def write_sync(self, job: Callable[[Connection], T]) -> T:
        return self._writer.submit_sync(job, Urgency.WORK)

    def close(self) -> None:
        self._writer.close()
        self._readers.shutdown(wait=True, cancel_futures=True)
        self._engine.dispose()


class _PostgresLanes:
    def __init__(self, url: URL, settings: DatabaseSettings) -> None:
        self._guard = postgres.Guard(settings.patience)
        self._engines = {
            Urgency.WORK: postgres.open_engine(url, settings.pool, settings.pool_wait),
            Urgency.LEASE: postgres.open_engine(url, 1, 2.0),
        }
        self._reading = postgres.for_reading(self._engines[Urgency.WORK])
        self._threads = {
            Urgency.WORK: ThreadPoolExecutor(settings.pool, thread_name_prefix="db"),
            Urgency.LEASE: ThreadPoolExecutor(1, thread_name_prefix="db-lease"),
        }

    async def write(self, job: Callable[[Connection], T], urgency: Urgency) -> T:
        return await self._in_thread(urgency, self._engines[urgency], job)

    async def read(self, job: Callable[[Connection], T]) -> T:
        return await self._in_thread(Urgency.WORK, self._reading, job)

    async def _in_thread(
        self, urgency: Urgency, engine: Engine, job: Callable[[Connection], T]
    ) -> T:
        return await _in_thread(
            self._threads[urgency], partial(postgres.transact, engine, self._guard, job)
        )

    def write_sync(self, job: Callable[[Connection], T]) -> T:
        return postgres.transact(self._engines[Urgency.WORK], self._guard, job)

    def close(self) -> None:
        for threads in self._threads.values():
            threads.shutdown(wait=True, cancel_futures=True)
        for engine in self._engines.values():
            engine.dispose()
        self._guard.close()
