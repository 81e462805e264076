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
import sqlite3 as _stdlib_sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

import pysqlite3.dbapi2 as sqlite3
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.domain.ports import Clock
from storage.clock import LEASE_CLOCK_FUNCTION, LEASE_NOW_FUNCTION, NOW_FUNCTION
from storage.writer import SqliteWriter, Urgency

P = ParamSpec("P")
T = TypeVar("T")

_TRIES = 3
_RETRYABLE_STATES = frozenset({"40001", "40P01"})
"""Serialization failure, deadlock: PostgreSQL rolled the transaction back whole."""


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """Where the database is. `pool` bounds connections for work (the lease has one more)."""

    url: str
    pool: int = 8
    pool_wait: float = 30.0


def parsed_url(url: str) -> URL:
    """DATABASE_URL as SQLAlchemy reads it, with our driver. Raises ConfigurationError."""
    try:
        parsed = make_url(url)
    except Exception as error:
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


class Database:
    """Runs transactions. Raises DatabaseUnavailable when the database does not answer."""

    def __init__(self, settings: DatabaseSettings, clock: Clock) -> None:
        self.url = parsed_url(settings.url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._clock = clock
        self._lease = ThreadPoolExecutor(1, thread_name_prefix="db-lease")
        if self.is_sqlite:
            self._engine = _sqlite_engine(self.url, clock)
            self._writer: SqliteWriter | None = SqliteWriter(self._engine)
            self._work = ThreadPoolExecutor(2, thread_name_prefix="db-read")
            self._lease_engine = self._engine
        else:
            self._engine = _postgres_engine(self.url, settings.pool, settings.pool_wait)
            self._writer = None
            self._work = ThreadPoolExecutor(settings.pool, thread_name_prefix="db")
            self._lease_engine = _postgres_engine(self.url, 1, 2.0)

    async def write(
        self, move: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `move` in a transaction and commit it."""
        job = partial(_bound, move, args, kwargs)
        if self._writer is not None:
            return await self._writer.submit(job, Urgency.WORK)
        return await _in_thread(self._work, partial(_transact, self._engine, job))

    async def read(
        self, question: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `question`, which changes nothing, on one snapshot."""
        job = partial(_bound, question, args, kwargs)
        return await _in_thread(self._work, partial(_transact, self._engine, job))

    async def renew(
        self, move: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `move` in the lease's own lane, before all waiting work."""
        job = partial(_bound, move, args, kwargs)
        if self._writer is not None:
            return await self._writer.submit(job, Urgency.LEASE)
        return await _in_thread(self._lease, partial(_transact, self._lease_engine, job))

    def now_sync(
        self, move: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `move` on this thread and commit it: for programs without an event loop."""
        job = partial(_bound, move, args, kwargs)
        if self._writer is not None:
            return self._writer.submit_sync(job, Urgency.WORK)
        return _transact(self._engine, job)

    def close(self) -> None:
        """Finish what is queued and let go of every connection."""
        if self._writer is not None:
            self._writer.close()
        self._work.shutdown(wait=True, cancel_futures=True)
        self._lease.shutdown(wait=True, cancel_futures=True)
        self._engine.dispose()
        self._lease_engine.dispose()


def _bound(
    move: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], tx: Connection
) -> T:
    return move(tx, *args, **kwargs)


async def _in_thread(pool: ThreadPoolExecutor, job: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, job)


def _transact(engine: Engine, job: Callable[[Connection], T]) -> T:
    """Run `job` in a transaction, again if it was rolled back through no fault of its own."""
    for attempt in range(1, _TRIES + 1):
        try:
            with engine.begin() as tx:
                return job(tx)
        except DBAPIError as error:
            if attempt < _TRIES and _rolled_back(error):
                continue
            raise unavailable(error) from error
        except PoolTimeout as error:
            raise DatabaseUnavailable("no database connection became free in time") from error
    raise AssertionError("unreachable: the last try returns or raises")


def _rolled_back(error: DBAPIError) -> bool:
    state = getattr(error.orig, "sqlstate", None)
    return error.connection_invalidated or state in _RETRYABLE_STATES


def unavailable(error: DBAPIError) -> Exception:
    """The error to raise for `error`: DatabaseUnavailable when trying later may help."""
    if error.connection_invalidated or isinstance(error, OperationalError | InterfaceError):
        return DatabaseUnavailable(f"the database does not answer: {type(error.orig).__name__}")
    return error


def _postgres_engine(url: URL, pool: int, wait: float) -> Engine:
    return create_engine(
        url,
        pool_size=pool,
        max_overflow=0,
        pool_timeout=wait,
        connect_args={
            "connect_timeout": 2,
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": 10_000,
            "application_name": "answerback",
        },
    )


def _sqlite_engine(url: URL, clock: Clock) -> Engine:
    engine = create_engine(
        url,
        module=sqlite3,
        pool_size=4,
        max_overflow=0,
        isolation_level="AUTOCOMMIT",
        connect_args={"timeout": 10.0, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def prepare(raw: _stdlib_sqlite3.Connection, _record: object) -> None:
        raw.execute("PRAGMA journal_mode = WAL")
        raw.execute("PRAGMA synchronous = FULL")
        raw.execute("PRAGMA foreign_keys = ON")
        raw.create_function(NOW_FUNCTION, 0, clock.wall)
        raw.create_function(LEASE_NOW_FUNCTION, 0, lambda: clock.boot()[1])
        raw.create_function(LEASE_CLOCK_FUNCTION, 0, lambda: clock.boot()[0])

    return engine
