"""INSERT of a list, and of rows that may exist already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Boolean, ColumnElement, FromClause, Table, select, true
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from storage.statements.sets import Rows
from storage.statements.tx import Row, Tx


class nobody_makes(FunctionElement[bool]):  # noqa: N801 - used as a function, as `among` is
    """Claim this name until the transaction ends; false if another transaction has claimed it.
    Lists that would insert the same row use this, so that they don't wait for each other at a
    unique index."""

    type = Boolean()
    inherit_cache = True


@compiles(nobody_makes, "postgresql")
def _name_locked(element: nobody_makes, compiler: SQLCompiler, **kw: Any) -> str:
    return (
        f"pg_try_advisory_xact_lock(hashtextextended({compiler.process(element.clauses, **kw)}, 0))"
    )


@compiles(nobody_makes, "sqlite")
def _one_writer(_element: nobody_makes, _compiler: SQLCompiler, **_kw: Any) -> str:
    return "true"


def insert_rows(
    table: Table,
    given: Rows,
    condition: ColumnElement[bool] | None = None,
    order: Sequence[ColumnElement[Any]] = (),
    joined: FromClause | None = None,
    **computed: ColumnElement[Any],
) -> Insert:
    """INSERT of a list: the columns that the list and the table both have, and those that SQL has
    `computed` from the list, or from what it is `joined` to."""
    columns = {name: column for name, column in given.c.items() if name in table.c} | computed
    rows = select(*columns.values()).select_from(given.table if joined is None else joined)
    # SQLite tells ON CONFLICT from the ON of a join by a WHERE between them.
    rows = rows.where(true() if condition is None else condition).order_by(*order)
    return insert(table).from_select(list(columns), rows)


class InsertOrSkip:
    """INSERT ... ON CONFLICT DO NOTHING, which SQLite and PostgreSQL spell alike. `computed` are
    the columns whose values are SQL."""

    def __init__(
        self, table: Table, *returning: ColumnElement[Any], **computed: ColumnElement[Any]
    ) -> None:
        skipping = insert(table).values(**computed).on_conflict_do_nothing()
        self._statement = skipping.returning(*returning)

    def row(self, tx: Tx, values: Mapping[str, object]) -> Row | None:
        """The returned columns of the new row; None if the row existed."""
        return tx.execute(self._statement, values).first()

    def run(self, tx: Tx, values: Mapping[str, object]) -> Any | None:
        """The first returned column of the new row; None if the row existed."""
        return tx.scalar(self._statement, values)
