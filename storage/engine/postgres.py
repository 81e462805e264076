"""PostgreSQL: connections, transactions, and getting free of a server that hangs.

The server ends a session that stays idle in a transaction, so that a process which was stopped
in its middle keeps no rows locked; and nobody waits for a lock for long. A server that stops
answering is met from this side: no protocol ends a wait on a Unix socket, so a guard closes the
connection of a transaction that takes too long, and its thread is free again.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from bot.domain.errors import DatabaseUnavailable

T = TypeVar("T")

_TRIES = 3
_ROLLED_BACK = frozenset({"40001", "40P01"})
"""Serialization failure, deadlock: PostgreSQL undid the transaction whole."""
_READ_ONLY = "25006"
"""A standby, or a server that is about to become one."""

_SESSION = (
    "SET lock_timeout = '5s'",
    "SET idle_in_transaction_session_timeout = '5s'",
)


def open_engine(url: URL, pool: int, wait: float) -> Engine:
    """`pool` connections, for one of which a caller waits at most `wait` seconds."""
    engine = create_engine(
        url,
        pool_size=pool,
        max_overflow=0,
        hide_parameters=True,  # they are what people wrote
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

    @event.listens_for(engine, "connect")
    def prepare(raw: psycopg.Connection[Any], _record: object) -> None:
        with raw.cursor() as cursor:
            for setting in _SESSION:
                cursor.execute(setting)
        raw.commit()

    return engine


def for_reading(engine: Engine) -> Engine:
    """The same connections, each transaction on one snapshot."""
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


class Guard:
    """Closes connections whose transactions take more than `patience` seconds.

    It counts them by its own waits: a process that was stopped has not used any.
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._door = threading.Lock()
        self._ages: dict[int, int] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="db-guard", daemon=True)
        self._thread.start()

    @contextmanager
    def over(self, tx: Connection) -> Iterator[None]:
        """Watch the transaction that the body runs on this connection."""
        raw: Any = tx.connection.driver_connection
        # A number of our own: the connection's may be another file's by the time we act.
        number = os.dup(raw.pgconn.socket)
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
    """End both directions of a connection that a thread waits on: it reads the end and fails."""
    line = socket.socket(fileno=number)
    try:
        line.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # It has ended by itself.
    finally:
        line.detach()


def transact(engine: Engine, guard: Guard, job: Callable[[Connection], T]) -> T:
    """Run `job` in a transaction, again if it was rolled back through no fault of its own.
    Raises DatabaseUnavailable."""
    for attempt in range(1, _TRIES + 1):
        try:
            with engine.connect() as tx, guard.over(tx), tx.begin():
                return job(tx)
        except DBAPIError as error:
            if attempt < _TRIES and _worth_repeating(error):
                continue
            raise _told(error, engine) from error
        except PoolTimeout as error:
            raise DatabaseUnavailable("no database connection became free in time") from error
    raise AssertionError("unreachable: the last try returns or raises")


def _worth_repeating(error: DBAPIError) -> bool:
    return error.connection_invalidated or _state(error) in _ROLLED_BACK


def _told(error: DBAPIError, engine: Engine) -> Exception:
    """The error to raise for `error`: DatabaseUnavailable when trying later may help."""
    meant_to_write = not engine.get_execution_options().get("postgresql_readonly")
    standby = _state(error) == _READ_ONLY and meant_to_write
    later = isinstance(error, OperationalError | InterfaceError) or standby
    if error.connection_invalidated or later:
        return DatabaseUnavailable(f"the database does not answer: {type(error.orig).__name__}")
    return error


def _state(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)
