"""SQLite: connections that know our clock, and reading on one snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pysqlite3.dbapi2 as sqlite3
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from bot.domain.errors import DatabaseUnavailable
from bot.domain.ports import Clock
from storage.engine.clock import LEASE_CLOCK_FUNCTION, LEASE_NOW_FUNCTION, NOW_FUNCTION

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds that a writer waits for another process to finish its transaction."""


def open_engine(url: URL, clock: Clock) -> Engine:
    """One connection for the writer and some for readers, all in autocommit: whoever needs a
    transaction begins it."""
    engine = create_engine(
        url,
        module=sqlite3,
        pool_size=4,
        max_overflow=0,
        hide_parameters=True,  # they are what people wrote
        isolation_level="AUTOCOMMIT",
        connect_args={"timeout": PATIENCE, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def prepare(raw: sqlite3.Connection, _record: object) -> None:
        raw.execute("PRAGMA journal_mode = WAL")
        raw.execute("PRAGMA synchronous = FULL")
        raw.execute("PRAGMA foreign_keys = ON")
        raw.create_function(NOW_FUNCTION, 0, clock.wall)
        raw.create_function(LEASE_NOW_FUNCTION, 0, lambda: clock.boot()[1])
        raw.create_function(LEASE_CLOCK_FUNCTION, 0, lambda: clock.boot()[0])

    return engine


def read(engine: Engine, job: Callable[[Connection], T]) -> T:
    """Run `job` on one snapshot. Raises DatabaseUnavailable."""
    try:
        with engine.connect() as tx:
            tx.exec_driver_sql("BEGIN")
            try:
                return job(tx)
            finally:
                tx.exec_driver_sql("ROLLBACK")
    except (OperationalError, InterfaceError) as error:
        raise _unavailable(error) from error


def _unavailable(error: DBAPIError) -> DatabaseUnavailable:
    return DatabaseUnavailable(f"SQLite does not answer: {error.orig}")
