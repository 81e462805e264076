"""One open transaction: statements are compiled once and run by the driver itself.

A statement is a SQLAlchemy Core construct, best a constant of its module: its SQL for each kind
of database is kept as long as the statement lives, and the driver prepares it. Values are handed
over beside it by the names of its `bindparam`s. Nothing is interpolated, ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload
from weakref import WeakKeyDictionary

import pysqlite3.dbapi2 as sqlite3
from sqlalchemy import Boolean, Dialect, Executable
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.selectable import ReturnsRows, TypedReturnsRows

from bot.domain.errors import DatabaseUnavailable

T = TypeVar("T")

SQLITE: Dialect = SQLiteDialect_pysqlite(dbapi=sqlite3, paramstyle="named")
POSTGRES: Dialect = PGDialect_psycopg()  # type: ignore[no-untyped-call]  # it has no types

_HURRY = "SET LOCAL lock_timeout = '50ms'"
_NOTHING: Mapping[str, object] = {}


class StatementFailed(Exception):
    """The database refused a statement, and will again: a constraint, or a fault of ours. The
    text and `said`, a part of it, hold no value; `orig` is the driver's own error, whose text may.
    """

    def __init__(self, orig: Exception, said: str, statement: str) -> None:
        self.orig = orig
        self.__suppress_context__ = True
        super().__init__(f"{type(orig).__name__}{said}: {' '.join(statement.split())}")


class RowsLocked(DatabaseUnavailable):
    """Somebody else has locked what a statement needs, for longer than it may wait."""


class Row(tuple[Any, ...]):
    """A row: its values in order, and by the names of its columns."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))


def _row_class(names: Sequence[str]) -> type[Row]:
    columns = {name: property(itemgetter(place)) for place, name in enumerate(names)}
    return type("Row", (Row,), {"__slots__": (), "_fields": tuple(names), **columns})


class Result(Generic[T]):
    """The answer of a statement, read whole. `rowcount` counts what it changed, or its rows."""

    __slots__ = ("_rows", "rowcount")

    def __init__(self, rows: list[T], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def __iter__(self) -> Iterator[T]:
        return iter(self._rows)

    def all(self) -> list[T]:
        """Every row."""
        return self._rows

    def first(self) -> T | None:
        """The first row, or None."""
        return self._rows[0] if self._rows else None

    def one(self) -> T:
        """The only row. Any other number of rows is a fault of ours."""
        [row] = self._rows
        return row


@dataclass(slots=True)
class _Compiled:
    """SQL of one database for a statement. `bound` are the values within the statement, and
    `booleans` the columns that SQLite tells as numbers."""

    sql: str
    bound: Mapping[str, object]
    booleans: tuple[int, ...]
    row: type[Row] | None = None
    """The names of its rows' columns. None before its first answer, and when it answers none."""
    answered: bool = False


_compiled: WeakKeyDictionary[Executable, dict[tuple[str, tuple[str, ...]], _Compiled]] = (
    WeakKeyDictionary()
)


def _compile(statement: Executable, dialect: Dialect, given: tuple[str, ...]) -> _Compiled:
    """The SQL of a statement that is given these values: an INSERT names no other columns."""
    compiled = statement.compile(  # type: ignore[attr-defined]  # every Executable of Core has it
        dialect=dialect, column_keys=given, compile_kwargs={"render_postcompile": True}
    )
    assert isinstance(compiled, SQLCompiler)
    required = {name for name, bind in compiled.binds.items() if bind.required}
    bound = {name: value for name, value in compiled.params.items() if name not in required}
    columns = statement.exported_columns if isinstance(statement, ReturnsRows) else ()
    booleans = [n for n, column in enumerate(columns) if isinstance(column.type, Boolean)]
    return _Compiled(compiled.string, bound, tuple(booleans) if dialect is SQLITE else ())


class Tx:
    """Runs statements in the transaction that is open on a driver's connection."""

    __slots__ = ("_cursor", "_unsent", "connection", "dialect", "statement")

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        self.connection = connection
        self.dialect = dialect
        self.statement = ""
        """The last one, for the error that it may meet."""
        self._cursor = connection.cursor()
        self._unsent: list[tuple[str, Mapping[str, object]]] = []

    @property
    def is_sqlite(self) -> bool:
        """Tell whether it is SQLite, and not PostgreSQL."""
        return self.dialect is SQLITE

    def execute(
        self, statement: Executable, values: Mapping[str, object] = _NOTHING
    ) -> Result[Row]:
        """Run a statement with these values for its binds."""
        compiled = self._compiled(statement, values)
        self._send(compiled.sql, {**compiled.bound, **values})
        if not compiled.answered:
            described = self._cursor.description
            compiled.row = described and _row_class([column[0] for column in described])
            compiled.answered = True
        if compiled.row is None:
            return Result([], self._cursor.rowcount)
        found = self._cursor.fetchall()
        if compiled.booleans:
            found = [with_booleans(row, compiled.booleans) for row in found]
        return Result([compiled.row(row) for row in found], len(found))

    def later(self, statement: Executable, values: Mapping[str, object] = _NOTHING) -> None:
        """Run a statement whose answer nobody needs: PostgreSQL gets it together with the next
        one, or with the commit, and so without a round trip of its own."""
        compiled = self._compiled(statement, values)
        self.send_later(compiled.sql, {**compiled.bound, **values})

    def send_later(self, sql: str, values: Mapping[str, object] = _NOTHING) -> None:
        """As `later`, for SQL in the driver's own spelling."""
        if self.is_sqlite:
            self._send(sql, values)
        else:
            self._unsent.append((sql, values))

    def hurry(self) -> None:
        """From here on a statement that has to wait for somebody's lock raises RowsLocked soon.
        On SQLite nobody else writes while this transaction is open."""
        if not self.is_sqlite:
            self.send_later(_HURRY)

    def commit(self) -> None:
        """Commit, with what was left for later."""
        if self.statement or len(self._unsent) > 1:  # else nothing but a BEGIN, not sent yet
            self._send("COMMIT", _NOTHING)

    def run(self, sql: str, values: Mapping[str, object] = _NOTHING) -> list[tuple[Any, ...]]:
        """Run SQL in the driver's own spelling."""
        self._send(sql, values)
        return self._cursor.fetchall() if self._cursor.description else []

    def _compiled(self, statement: Executable, values: Mapping[str, object]) -> _Compiled:
        given = tuple(values)
        known = _compiled.setdefault(statement, {})
        compiled = known.get((self.dialect.name, given))
        if compiled is None:
            compiled = _compile(statement, self.dialect, given)
            known[self.dialect.name, given] = compiled
        return compiled

    def _send(self, sql: str, values: Mapping[str, object]) -> None:
        self.statement = sql
        if not self._unsent:
            self._cursor.execute(sql, values)
            return
        unsent, self._unsent = self._unsent, []
        with self.connection.pipeline():
            for before, with_values in unsent:
                self.connection.execute(before, with_values)
            self._cursor.execute(sql, values)

    @overload
    def scalars(
        self,
        statement: TypedReturnsRows[T, *tuple[Any, ...]],
        values: Mapping[str, object] = _NOTHING,
    ) -> Result[T]: ...

    @overload
    def scalars(
        self, statement: Executable, values: Mapping[str, object] = _NOTHING
    ) -> Result[Any]: ...

    def scalars(
        self, statement: Executable, values: Mapping[str, object] = _NOTHING
    ) -> Result[Any]:
        """The first value of every row."""
        rows = self.execute(statement, values)
        return Result([row[0] for row in rows], rows.rowcount)

    @overload
    def scalar(
        self,
        statement: TypedReturnsRows[T, *tuple[Any, ...]],
        values: Mapping[str, object] = _NOTHING,
    ) -> T | None: ...

    @overload
    def scalar(self, statement: Executable, values: Mapping[str, object] = _NOTHING) -> Any: ...

    def scalar(self, statement: Executable, values: Mapping[str, object] = _NOTHING) -> Any:
        """The first value of the first row; None when there is no row."""
        return self.scalars(statement, values).first()


def with_booleans(row: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
    """The row with true and false at these places, where SQLite has 1 and 0."""
    told = list(row)
    for place in places:
        if told[place] is not None:
            told[place] = bool(told[place])
    return tuple(told)
