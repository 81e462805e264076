"""PostgreSQL: connections, transactions, and getting free of a server that hangs.

The server ends a session that stays idle in a transaction, so that a process which was stopped
in its middle keeps no rows locked; and nobody waits for a lock for long. A server that stops
answering is met from this side: no protocol ends a wait on a Unix socket, so a guard closes the
connection of a transaction that takes too long, and its thread is free again.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg.types.numeric import Int8Dumper
from sqlalchemy import URL

from bot.domain.errors import DatabaseUnavailable
from storage.statements.tx import POSTGRES, RowsLocked, StatementFailed, Tx

T = TypeVar("T")

_TRIES = 3
"""Tries for a transaction whose connection broke."""
_VICTIM_TRIES = 8
"""Tries for a transaction that PostgreSQL rolled back: each time, a competing one succeeded."""
_ROLLED_BACK = frozenset({"40001", "40P01"})
"""Serialization failure and deadlock: PostgreSQL rolled the whole transaction back."""
_READ_ONLY = "25006"
"""The server is a standby, or is about to become one."""
_NO_PLACE = ("42501", "XX")
"""The server can't write a file, because of a quota or a mount that is read only. Its class of
error does not say so, but what is written is not at fault, and may succeed later."""
_TOO_MUCH = "54"
"""The class of errors for values that are too long for the database: a key, a list."""
_LOCKED = "55P03"
_WRITE = "BEGIN"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_NONE = ""
"""The ways in which a transaction begins: one that writes; one that reads a single snapshot; and
none, for a single statement."""

_SESSION = (
    "SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '5s';"
    " SET default_transaction_isolation = 'read committed'; SET jit = off"
)
"""JIT compilation is off: it takes a tenth of a second, and all our statements are short, even
those whose plan looks expensive enough for it."""
_LINE: dict[str, Any] = {
    "connect_timeout": 2,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "answerback",
}
_TEXT: dict[str, Any] = {"client_encoding": "UTF8"}
"""Settings that no role, URL or environment may change."""


def connect(url: URL) -> psycopg.Connection[Any]:
    """One connection, without an open transaction. Raises psycopg.OperationalError."""
    _, options = POSTGRES.create_connect_args(url)
    connection = psycopg.connect(**{**_LINE, **options, **_TEXT}, autocommit=True)
    connection.execute(_SESSION)
    # One type for every number: else each size of it would be prepared as a statement of its own.
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.prepared_max = 500
    return connection


class _Pool:
    """At most `size` connections. A caller waits for one at most `wait` seconds."""

    def __init__(self, url: URL, size: int, wait: float) -> None:
        self._url = url
        self._wait = wait
        self._places = threading.BoundedSemaphore(size)
        self._idle: queue.LifoQueue[psycopg.Connection[Any]] = queue.LifoQueue()

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection that only the body uses. Raises DatabaseUnavailable."""
        if not self._places.acquire(timeout=self._wait):
            raise DatabaseUnavailable("no database connection became free in time")
        try:
            connection = self._taken()
            try:
                yield connection
            finally:
                if connection.closed:
                    self.close()  # What broke this one broke those that were idle meanwhile.
                else:
                    self._idle.put(connection)
        finally:
            self._places.release()

    def _taken(self) -> psycopg.Connection[Any]:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return connect(self._url)

    def close(self) -> None:
        """Close the idle connections."""
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return


class _Guard:
    """Closes connections whose transactions take more than `patience` seconds.

    It counts seconds by its own waits, so that time in which the process was frozen does not count.
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._door = threading.Lock()
        self._ages: dict[int, int] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="db-guard", daemon=True)
        self._thread.start()

    @contextmanager
    def over(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        """Watch the transaction that the body runs on this connection."""
        # A descriptor of our own: the connection's number may be another file's when we act.
        number = os.dup(connection.pgconn.socket)
        with self._door:
            self._ages[number] = 0
        try:
            yield
        finally:
            with self._door:
                del self._ages[number]
                os.close(number)

    def close(self) -> None:
        """Stop watching."""
        self._closing.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closing.wait(1.0):
            with self._door:
                for number in tuple(self._ages):
                    self._ages[number] += 1
                    if self._ages[number] > self._patience:
                        _hang_up(number)


def _hang_up(number: int) -> None:
    """Shut down a connection on which a thread waits, so that the thread fails."""
    line = socket.socket(fileno=number)
    try:
        line.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # It has ended by itself.
    finally:
        line.detach()


class Postgres:
    """Transactions on a pool of connections, each used by one thread at a time. The lease has a
    connection and a thread of its own, so that a renewal never waits behind other work."""

    def __init__(self, url: URL, pool: int, pool_wait: float, patience: int) -> None:
        self._guard = _Guard(patience)
        self._work = _Pool(url, pool, pool_wait)
        self._lease = _Pool(url, 1, 2.0)
        self._work_threads = ThreadPoolExecutor(pool, thread_name_prefix="db")
        self._lease_thread = ThreadPoolExecutor(1, thread_name_prefix="db-lease")

    async def write(self, job: Callable[[Tx], T]) -> T:
        """Run the job in a transaction and commit it."""
        return await self._in_thread(self._work_threads, self._work, _WRITE, job)

    async def read(self, job: Callable[[Tx], T]) -> T:
        """Run the job on one snapshot."""
        return await self._in_thread(self._work_threads, self._work, _READ, job)

    async def ask(self, job: Callable[[Tx], T]) -> T:
        """Run a job that is a single statement, without a transaction around it."""
        return await self._in_thread(self._work_threads, self._work, _NONE, job)

    async def renew(self, job: Callable[[Tx], T]) -> T:
        """Run the job on the lease's own connection."""
        return await self._in_thread(self._lease_thread, self._lease, _WRITE, job)

    def write_sync(self, job: Callable[[Tx], T]) -> T:
        """Run the job on this thread."""
        return self._transact(self._work, _WRITE, job)

    def close(self) -> None:
        """Finish what is queued, and close every connection."""
        for threads in (self._work_threads, self._lease_thread):
            threads.shutdown(wait=True, cancel_futures=True)
        for pool in (self._work, self._lease):
            pool.close()
        self._guard.close()

    async def _in_thread(
        self, threads: ThreadPoolExecutor, pool: _Pool, begin: str, job: Callable[[Tx], T]
    ) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            threads, partial(self._transact, pool, begin, job)
        )

    def _transact(self, pool: _Pool, begin: str, job: Callable[[Tx], T]) -> T:
        """Run `job` in a transaction, again if it was rolled back through no fault of its own.
        Raises DatabaseUnavailable, StatementFailed."""
        for attempt in itertools.count(1):
            statement, broke = "", False
            try:
                with pool.connection() as connection, self._guard.over(connection):
                    tx = Tx(connection, POSTGRES)
                    try:
                        return _committed(tx, begin, job)
                    finally:
                        statement, broke = tx.statement, connection.closed
            except psycopg.Error as error:
                undone = error.sqlstate in _ROLLED_BACK
                if (broke and attempt < _TRIES) or (undone and attempt < _VICTIM_TRIES):
                    continue
                raise _told(error, begin, statement, broke=broke) from None
        raise AssertionError("unreachable: a last try returns or raises")


def _committed(tx: Tx, begin: str, job: Callable[[Tx], T]) -> T:
    connection: psycopg.Connection[Any] = tx.connection
    if begin is _NONE:
        return job(tx)
    tx.send_later(begin)
    try:
        result = job(tx)
        tx.commit()
    except BaseException:
        if not connection.closed:
            connection.rollback()
        raise
    return result


def _told(error: psycopg.Error, begin: str, statement: str, *, broke: bool) -> Exception:
    """The error to raise for `error`: DatabaseUnavailable when trying later may help."""
    if error.sqlstate == _LOCKED:
        return RowsLocked("somebody else has locked what the database is asked for")
    code = error.sqlstate or ""
    unwritable = begin is _WRITE and (code == _READ_ONLY or code.startswith(_NO_PLACE))
    away = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    if broke or unwritable or (away and not code.startswith(_TOO_MUCH)):
        return DatabaseUnavailable(f"the database does not answer: {type(error).__name__}")
    said = f", {error.diag.constraint_name or error.sqlstate}"
    return StatementFailed(error, said, statement).with_traceback(error.__traceback__)
