"""The facts of a PostgreSQL server, which `storage/engine/demands.py` judges."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.rows import class_row
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
            return _refused_by_server(connection).why
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
    # A pooler may refuse the asking itself.
    refused = _TAKEN if shares else _refused_by_server(one)
    return DatabaseFacts(
        "PostgreSQL",
        divmod(number, 10_000),
        encoding,
        isolation,
        shares,
        refusal=refused.why,
        foreign=refused.whose_alone,
        durable=durable,
        room=room,
        took=took,
        ahead=ahead,
    )


class _Refusal(NamedTuple):
    """The reason why a write is refused, empty for none. `whose_alone`: it is this role that may
    not write, and others may."""

    why: str
    whose_alone: bool = False


_TAKEN = _Refusal("")


class _State(NamedTuple):
    """A server's state and a role's rights, as `_STATE` asks for them."""

    copied: bool
    standby: bool
    read_only: bool
    for_this_role: bool
    role: str
    owner: str | None
    may_write: bool | None


_STATE = f"""SELECT {copy_lock.IS_HELD} AS copied, pg_is_in_recovery() AS standby,
    set_to.setting = 'on' AS read_only,
    set_to.source IN ('user', 'database user', 'client') AS for_this_role,
    current_user AS role, pg_get_userbyid(holders.relowner) AS owner,
    has_table_privilege(holders.oid, 'INSERT')
        AND has_table_privilege(holders.oid, 'UPDATE') AS may_write
    FROM pg_settings AS set_to LEFT JOIN pg_class AS holders ON holders.oid = to_regclass('holders')
    WHERE set_to.name = 'default_transaction_read_only'"""  # noqa: S608 - an expression of ours
"""The rights are asked of one table: every process writes there first. None where there is no table
yet."""


def _refused_by_server(connection: psycopg.Connection[Any]) -> _Refusal:
    """The refusal of a write now. Raises psycopg.OperationalError."""
    with connection.cursor(row_factory=class_row(_State)) as cursor:
        row = cursor.execute(_STATE, prepare=False).fetchone()
    assert row is not None
    if row.copied:
        return _Refusal(copy_lock.AT_WORK)
    if row.standby:
        return _Refusal("it is a standby")
    may_not = row.may_write is False
    if row.read_only and not (may_not and row.for_this_role):
        return _Refusal("it is set to read only")
    if refused := _refused_room(connection):
        return _Refusal(refused)
    if may_not:
        why = f"{row.role} may not write the tables: run this as {row.owner}, who owns them"
        return _Refusal(why, whose_alone=True)
    return _TAKEN


_NO_PROOF = frozenset({"53400", "57014"})
"""A limit of temporary files, and one of time: they say nothing of the disk."""
_WITH_A_FILE = (
    "SET LOCAL work_mem = '64kB'",
    "SET LOCAL temp_tablespaces = ''",
    "SELECT count(DISTINCT repeat('.', 1900) || n) FROM generate_series(1, 400) AS n",
)
"""Sorts 760 kB with a file on the disk of the database, which the server takes away by itself:
nothing of it stands in a table or a catalogue, and any role may do it."""


def _refused_room(connection: psycopg.Connection[Any]) -> str:
    """The words in which the disk takes no file; empty where it does. Rows that exist already may
    be written on a disk that is full, so that writing one of them tells nothing."""
    try:
        connection.execute("BEGIN READ ONLY", prepare=False)
        for statement in _WITH_A_FILE:
            connection.execute(statement, prepare=False)
    except psycopg.Error as error:
        if connection.closed:
            raise
        return "" if error.sqlstate in _NO_PROOF else str(error).partition("\n")[0]
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
