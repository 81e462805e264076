"""The facts of a PostgreSQL server, which `storage/engine/demands.py` judges."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from sqlalchemy import URL

from bot.domain.ports import Clock
from storage.engine import copy_lock, postgres
from storage.engine.demands import DatabaseFacts, unreachable
from storage.statements.tx import POSTGRES, Tx

T = TypeVar("T")

_ROUNDS = 5
"""A pooler gives a connection another session in one of so many transactions."""


def facts_of(url: URL, clock: Clock) -> DatabaseFacts:
    """Ask a server, with two connections. Raises DatabaseUnavailable."""
    try:
        with closing(postgres.connect(url)) as one, closing(postgres.connect(url)) as other:
            return _of_server(one, other, clock)
    except psycopg.OperationalError as error:
        raise unreachable(url, error) from error


def refusal_of(url: URL) -> str:
    """The reason why a server refuses a write now; empty for none. Raises DatabaseUnavailable."""
    try:
        with closing(postgres.connect(url)) as connection:
            return _refused_by_server(connection)
    except psycopg.OperationalError as error:
        raise unreachable(url, error) from error


def ask(url: URL, question: Callable[[Tx], T]) -> T:
    """Ask on a connection of its own. Raises DatabaseUnavailable."""
    try:
        with closing(postgres.connect(url)) as connection:
            return question(Tx(connection, POSTGRES))
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise unreachable(url, error) from error


_ASK = """SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
    current_setting('transaction_isolation'),
    current_setting('fsync')::bool AND current_setting('synchronous_commit') <> 'off',
    current_setting('max_connections')::int - (SELECT count(*) FROM pg_stat_activity),
    extract(epoch FROM clock_timestamp())::float"""


def _of_server(
    one: psycopg.Connection[Any], other: psycopg.Connection[Any], clock: Clock
) -> DatabaseFacts:
    shares = _share_sessions(one, other)
    began = clock.monotonic()
    row = one.execute(_ASK, prepare=False).fetchone()
    assert row is not None
    number, encoding, isolation, durable, room, now = row
    took = clock.monotonic() - began
    ahead = now - clock.wall()
    return DatabaseFacts(
        "PostgreSQL",
        divmod(number, 10_000),
        encoding,
        isolation,
        shares,
        refusal="" if shares else _refused_by_server(one),  # A pooler may refuse the asking itself.
        durable=durable,
        room=room,
        took=took,
        ahead=ahead,
    )


_STATE = f"""SELECT {copy_lock.IS_HELD}, pg_is_in_recovery(),
    current_setting('default_transaction_read_only')::bool,
    has_schema_privilege(current_schema(), 'CREATE'),
    has_database_privilege(current_database(), 'TEMPORARY')"""
_PAGES = "SELECT repeat('.', 1900) FROM generate_series(1, 32)"
"""Of a table: 64 KiB, for which the disk must have room."""


def _refused_by_server(connection: psycopg.Connection[Any]) -> str:
    """A row that exists already may be written on a disk that is full: a table is made, and
    undone, where the role may make one. Raises psycopg.OperationalError."""
    row = connection.execute(_STATE, prepare=False).fetchone()
    assert row is not None
    copied, standby, read_only, in_schema, temporary = row
    if copied:
        return copy_lock.AT_WORK
    if standby or read_only:
        return "it is a standby" if standby else "it is set to read only"
    if not (in_schema or temporary):
        return ""
    table = sql.Identifier(f"answerback_probe_{connection.info.backend_pid}")
    kind = sql.SQL("TABLE" if in_schema else "TEMPORARY TABLE")
    try:
        connection.execute("BEGIN", prepare=False)
        made = sql.SQL("CREATE {} {} AS {}").format(kind, table, sql.SQL(_PAGES))
        connection.execute(made, prepare=False)
    except psycopg.Error as error:
        if connection.closed:
            raise
        return str(error).partition("\n")[0]
    finally:
        if not connection.closed:
            connection.execute("ROLLBACK", prepare=False)
    return ""


def _share_sessions(one: psycopg.Connection[Any], other: psycopg.Connection[Any]) -> bool:
    """Tell whether transactions of a connection meet a session that is not its own: that of another
    connection, or another one each time."""
    met: list[set[object]] = [set(), set()]
    for _ in range(_ROUNDS):
        for sessions, connection in zip(met, (one, other), strict=True):
            sessions.add(connection.execute("SELECT pg_backend_pid()", prepare=False).fetchone())
    return len(met[0] | met[1]) != 2 or not met[0].isdisjoint(met[1])
