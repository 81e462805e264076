"""The two databases of a copy: each is read, locked, filled and sealed in the same words.

One transaction on each side holds all of a copy. Rows go through one by one: nothing is kept but
what the drivers hand over at once, however large a table is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pysqlite3.dbapi2 as sqlite3
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy import URL, Boolean, Column, Table
from sqlalchemy.schema import (
    AddConstraint,
    CreateIndex,
    DropConstraint,
    DropIndex,
    ExecutableDDLElement,
)

from bot.domain.decisions.seals import SEALED_REVISIONS, DatabaseState
from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.domain.ports import Clock
from storage.engine import copy_lock, postgres, sqlite
from storage.schema.revisions import schema_of
from storage.schema.seal import seal_of
from storage.schema.tables import metadata
from storage.statements.tx import POSTGRES, SQLITE, Tx, with_booleans

Values = tuple[Any, ...]

_SQLITE_CACHE_KIB = 64_000
"""Pages that are filled wait in it, and indexes are sorted in it."""
_PATIENT = (
    "SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0;"
    " SET lock_timeout = '10s'"
)
"""One side waits in its transaction while the other is at work."""


class CopyFailed(Exception):
    """A copy was given up; the text is for operators and holds no value of a row."""


class End(Protocol):
    """One database of a copy, on one connection. Every method raises DatabaseUnavailable or
    CopyFailed for what it meets."""

    @property
    def place(self) -> str: ...

    @property
    def tx(self) -> Tx: ...

    def begin(self) -> None:
        """Begin a transaction."""

    def hold(self) -> None:
        """Begin a transaction during which nobody else changes anything."""

    def commit(self) -> None: ...

    def rows(self, table: Table) -> Iterator[Values]:
        """Every row of a table, in the order of its columns."""

    def prepare(self) -> None:
        """Take away what makes filling slow."""

    def fill(self, table: Table, rows: Iterable[Values]) -> None:
        """Insert rows, which have the columns that are stored."""

    def finish(self) -> None:
        """Put back what `prepare` took away."""

    def last_number(self, table: Table) -> int:
        """The last number that this table's rows were given; 0 for none."""

    def number_on(self, table: Table, last: int) -> None:
        """Have this table's next row get a number above `last`."""


def place_of(url: URL) -> str:
    """A database by its name for operators, without user and password; always the same for the
    same URL."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{Path(str(url.database)).resolve()}"
    query = {name: value for name, value in url.query.items() if isinstance(value, str)}
    host = url.host or query.get("host") or "localhost"
    port = url.port or query.get("port") or 5432
    return f"postgresql://{host}:{port}/{url.database or ''}"


def stored(table: Table) -> list[Column[Any]]:
    """The columns of a table that the database does not compute by itself."""
    return [column for column in table.columns if column.computed is None]


@contextmanager
def end_of(url: URL, clock: Clock) -> Iterator[End]:
    """One end of a copy, locked against other copies while the body runs; what is not committed
    then is undone. Raises ConfigurationError, DatabaseUnavailable, CopyFailed."""
    place = place_of(url)
    if url.get_backend_name() == "sqlite":
        file = Path(str(url.database))
        with copy_lock.file_lock(file) as ours:
            _refuse_two(place, ours=ours)
            with unlocked_end_of(url, clock) as end:
                yield end
    else:
        with _session(url, place) as session, copy_lock.server_lock(session) as ours:
            _refuse_two(place, ours=ours)
            yield _PostgresEnd(place, session)


@contextmanager
def unlocked_end_of(url: URL, clock: Clock) -> Iterator[End]:
    """As `end_of`, only to look. Raises DatabaseUnavailable, CopyFailed."""
    place = place_of(url)
    if url.get_backend_name() == "sqlite":
        with _explained(sqlite3, place):
            connection = sqlite.connect(url, clock)
        with _explained(sqlite3, "SQLite"), closing(connection):
            yield _SqliteEnd(place, connection)
    else:
        with _session(url, place) as session:
            yield _PostgresEnd(place, session)


@contextmanager
def _session(url: URL, place: str) -> Iterator[psycopg.Connection[Any]]:
    with _explained(psycopg, place):
        session = postgres.connect(url)
    # By no place: what the source meets passes through here too, if it is of this kind.
    with _explained(psycopg, "PostgreSQL"), session:
        session.execute(_PATIENT)
        yield session


def _refuse_two(place: str, *, ours: bool) -> None:
    if not ours:
        raise ConfigurationError(f"{place}: another {copy_lock.AT_WORK}; wait for its end")


@contextmanager
def _explained(driver: Any, where: str) -> Iterator[None]:
    """Raise what this driver raises in the body as an error of ours, without the values of rows."""
    try:
        yield
    except driver.OperationalError as error:
        raise DatabaseUnavailable(f"{where}: {str(error).partition(chr(10))[0]}") from error
    except driver.Error as error:
        told: object = error
        if isinstance(error, psycopg.Error):
            known = error.diag.constraint_name or error.sqlstate or ""
            told = f"{type(error).__name__} {known}"
        raise CopyFailed(f"{where}: {told}") from None


def state_of(tx: Tx, place: str) -> DatabaseState:
    """A database before a copy."""
    names = [table.name for table in metadata.sorted_tables]
    found = {name for (name,) in tx.run(_TABLES[tx.is_sqlite])}
    ours = [name for name in names if name in found]
    schema = schema_of(tx)
    if schema is None:
        return DatabaseState(place, strange=ours)
    seal = seal_of(tx) if schema.floor in SEALED_REVISIONS else None
    filled = [name for name in ours if tx.run(f"SELECT 1 FROM {name} LIMIT 1")]  # noqa: S608 - ours
    return DatabaseState(place, schema.revision, seal, filled=filled)


_TABLES = {
    True: "SELECT name FROM sqlite_master WHERE type = 'table'",
    False: "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
}
"""By whether it is SQLite."""


class _SqliteEnd:
    def __init__(self, place: str, connection: Any) -> None:
        self.place = place
        self._connection = connection
        self.tx = Tx(connection, SQLITE)
        connection.execute(f"PRAGMA cache_size = -{_SQLITE_CACHE_KIB}")

    def begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def hold(self) -> None:
        self.begin()

    def commit(self) -> None:
        self._connection.execute("COMMIT")
        # What it wrote is all in the log so far, which is as large as the database.
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def rows(self, table: Table) -> Iterator[Values]:
        statement = str(sa.select(*table.columns).compile(dialect=SQLITE))
        flags = [n for n, c in enumerate(table.columns) if isinstance(c.type, Boolean)]
        found = self._connection.execute(statement)
        return (with_booleans(row, flags) for row in found) if flags else found

    def prepare(self) -> None:
        for index in _indexes():
            self._run(DropIndex(index))

    def fill(self, table: Table, rows: Iterable[Values]) -> None:
        columns = stored(table)
        names = ", ".join(_quoted(column.name) for column in columns)
        marks = ", ".join("?" * len(columns))
        insert = f"INSERT INTO {_quoted(table.name)} ({names}) VALUES ({marks})"  # noqa: S608 - ours
        self._connection.executemany(insert, rows)

    def finish(self) -> None:
        for index in _indexes():
            self._run(CreateIndex(index))

    def last_number(self, table: Table) -> int:
        return _highest(self.tx, table)

    def number_on(self, table: Table, last: int) -> None:
        """Nothing to do: SQLite goes on from the highest number that is there."""

    def _run(self, statement: ExecutableDDLElement) -> None:
        self._connection.execute(str(statement.compile(dialect=SQLITE)))


class _PostgresEnd:
    def __init__(self, place: str, session: psycopg.Connection[Any]) -> None:
        self.place = place
        self._session = session
        self.tx = Tx(session, POSTGRES)

    def begin(self) -> None:
        self._session.execute("BEGIN")

    def hold(self) -> None:
        self.begin()
        names = sql.SQL(", ").join(sql.Identifier(t.name) for t in metadata.sorted_tables)
        lock = sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(names)
        self._session.execute(lock)

    def commit(self) -> None:
        self._session.execute("COMMIT")

    def rows(self, table: Table) -> Iterator[Values]:
        columns = list(table.columns)
        query = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT BINARY)")
        statement = query.format(_listed(columns), sql.Identifier(table.name))
        with self._session.cursor().copy(statement) as copied:
            copied.set_types(_types(columns))
            yield from copied.rows()

    def prepare(self) -> None:
        for table in metadata.sorted_tables:
            for key in table.foreign_key_constraints:
                self._run(DropConstraint(key))
        for index in _indexes():
            self._run(DropIndex(index))

    def fill(self, table: Table, rows: Iterable[Values]) -> None:
        columns = stored(table)
        query = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)")
        statement = query.format(sql.Identifier(table.name), _listed(columns))
        with self._session.cursor().copy(statement) as copied:
            copied.set_types(_types(columns))
            for row in rows:
                copied.write_row(row)

    def finish(self) -> None:
        for index in _indexes():
            self._run(CreateIndex(index))
        for table in metadata.sorted_tables:
            for key in table.foreign_key_constraints:
                self._run(AddConstraint(key, isolate_from_table=False))
        # Without it the first plans would be those for empty tables.
        self._session.execute("ANALYZE")

    def last_number(self, table: Table) -> int:
        [(last, called)] = self.tx.run(f"SELECT last_value, is_called FROM {self._sequence(table)}")  # noqa: S608 - the server's own name
        return max(int(last) if called else 0, _highest(self.tx, table))

    def number_on(self, table: Table, last: int) -> None:
        if last:
            name = self._sequence(table)
            self.tx.run("SELECT setval(%(name)s, %(last)s)", {"name": name, "last": last})

    def _sequence(self, table: Table) -> str:
        named = {"table": table.name, "column": _numbered(table).name}
        [(name,)] = self.tx.run("SELECT pg_get_serial_sequence(%(table)s, %(column)s)", named)
        return str(name)

    def _run(self, statement: ExecutableDDLElement) -> None:
        self.tx.run(str(statement.compile(dialect=POSTGRES)))


def _indexes() -> Iterator[sa.Index]:
    for table in metadata.sorted_tables:
        yield from sorted(table.indexes, key=lambda index: str(index.name))


def _numbered(table: Table) -> Column[Any]:
    column = table.autoincrement_column
    assert column is not None
    return column


def _highest(tx: Tx, table: Table) -> int:
    return int(tx.scalar(sa.select(sa.func.max(_numbered(table)))) or 0)


def _quoted(name: str) -> str:
    return SQLITE.identifier_preparer.quote(name)


def _listed(columns: Iterable[Column[Any]]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(column.name) for column in columns)


def _types(columns: Iterable[Column[Any]]) -> list[str]:
    """The columns' types by the server's own names, for the binary form."""
    return [column.type.compile(dialect=POSTGRES).lower() for column in columns]
