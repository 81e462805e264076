"""The database: transactions as plain functions.

A transaction is a plain function of a connection and values: it can't wait for anything but
the database, so none is ever open while an agent thinks or a message is sent. It has no
effect but its statements, because it may run twice: once more when the connection broke or
the database chose it as a deadlock's victim before it could commit.

PostgreSQL: a pool of connections, each used by one thread at a time. SQLite: one writer
thread that takes what is queued, most urgent first, runs each function in a savepoint and
commits them together (one fsync for all that wait), and a few readers beside it. On both,
the lease has a way of its own, so that renewing never waits behind work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.domain.ports import Clock
from storage.engine import compact
from storage.engine.once import Once
from storage.engine.sqlite import Sqlite
from storage.statements.tx import Tx

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """The place of the database. `pool` bounds connections for work (the lease has one more); a
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


class _Engine(Protocol):
    """One kind of database, as it runs transactions."""

    async def write(self, job: Callable[[Tx], T]) -> T: ...

    async def read(self, job: Callable[[Tx], T]) -> T: ...

    async def ask(self, job: Callable[[Tx], T]) -> T: ...

    async def renew(self, job: Callable[[Tx], T]) -> T: ...

    def write_sync(self, job: Callable[[Tx], T]) -> T: ...

    def close(self) -> None: ...


class Database:
    """Runs transactions. Raises DatabaseUnavailable when the database does not answer."""

    def __init__(self, settings: DatabaseSettings, clock: Clock) -> None:
        self.url = parsed_url(settings.url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.on_wait: Callable[[float], object] = lambda _seconds: None
        self.on_broken: Callable[[], object] = lambda: None
        """Called, on another thread, once this process can't write any more."""
        self.trouble = ""
        """The error of a write that failed, until another write is known to succeed. On a full disk
        some may."""
        self._monotonic = clock.monotonic
        self._engine: _Engine = (
            Sqlite(self.url, clock, lambda: self.on_broken())  # noqa: PLW0108 - which is set later
            if self.is_sqlite
            else _postgres(self.url, settings)
        )

    async def write(
        self, move: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `move` in a transaction and commit it."""
        job = self._waited(partial(_bound, move, args, kwargs))
        return await self._noted(self._engine.write(job))

    async def write_once(
        self, move: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `write`, for a move that must not be made twice, but whose rows don't show that it was
        made: it is not repeated if only the answer to its commit was lost."""
        job = partial(_bound, move, args, kwargs)
        return await self.write(job if self.is_sqlite else Once(job))

    async def read(
        self, question: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `question`, which changes nothing, in a transaction with one snapshot."""
        return await self._engine.read(self._waited(partial(_bound, question, args, kwargs)))

    async def ask(
        self, question: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `question`, which is a single statement and changes nothing. As it needs no
        transaction, it costs one round trip."""
        return await self._engine.ask(self._waited(partial(_bound, question, args, kwargs)))

    async def renew(
        self, move: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `move` on the connection of the lease, ahead of all work that waits."""
        return await self._noted(self._engine.renew(partial(_bound, move, args, kwargs)))

    def now_sync(
        self, move: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `move` on this thread and commit it: for programs without an event loop."""
        return self._engine.write_sync(partial(_bound, move, args, kwargs))

    async def size(self) -> int:
        """The bytes of a file of SQLite, its journal among them."""
        return await asyncio.to_thread(compact.size_of, self.url)

    async def compact(self, tables: Sequence[str] = ()) -> bool:
        """Write a file of SQLite anew, or these tables of PostgreSQL, without what was deleted from
        them. False: somebody was in the way, and it is to be tried again. Nobody writes
        meanwhile."""
        return await asyncio.to_thread(compact.compact, self.url, tables)

    async def _noted(self, write: Awaitable[T]) -> T:
        """The write's result. That it failed is remembered."""
        try:
            return await write
        except DatabaseUnavailable as error:
            self.trouble = str(error)
            raise

    def _waited(self, job: Callable[[Tx], T]) -> Callable[[Tx], T]:
        """The job, which tells `on_wait` for how many seconds it waited to begin."""
        asked = self._monotonic()

        def begin(tx: Tx) -> T:
            self.on_wait(self._monotonic() - asked)
            return job(tx)

        return begin

    def close(self) -> None:
        """Finish what is queued, and close every connection."""
        self._engine.close()


def _postgres(url: URL, settings: DatabaseSettings) -> _Engine:
    from storage.engine.postgres import Postgres  # noqa: PLC0415 - its driver, where it is used

    return Postgres(url, settings.pool, settings.pool_wait, settings.patience)


def _bound(move: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], tx: Tx) -> T:
    return move(tx, *args, **kwargs)
