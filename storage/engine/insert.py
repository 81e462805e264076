"""INSERT, unless the row is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Insert, Table, select, true
from sqlalchemy.dialects.postgresql import insert

from storage.engine.sets import Rows
from storage.engine.tx import Row, Tx


def insert_listed(table: Table, rows: Rows, **computed: ColumnElement[Any]) -> Insert:
    """INSERT of a list's rows, in its order, each unless it is there. The list's columns that are
    the table's are stored as they are; `computed` are further ones, as SQL."""
    given = {column.name: column for column in rows.c if column.name in table.c}
    values = given | computed
    # SQLite reads ON CONFLICT as a part of a join if no WHERE stands between.
    listed = select(*values.values()).where(true())
    return insert(table).from_select(list(values), listed).on_conflict_do_nothing()


class InsertOrSkip:
    """INSERT ... ON CONFLICT DO NOTHING, of which SQLite and PostgreSQL have the same. `computed`
    are columns whose values are SQL."""

    def __init__(
        self, table: Table, *returning: ColumnElement[Any], **computed: ColumnElement[Any]
    ) -> None:
        skipping = insert(table).values(**computed).on_conflict_do_nothing()
        self._statement = skipping.returning(*returning)

    def row(self, tx: Tx, values: Mapping[str, object]) -> Row | None:
        """The returned columns of the new row; None when a row was there."""
        return tx.execute(self._statement, values).first()

    def run(self, tx: Tx, values: Mapping[str, object]) -> Any | None:
        """The first returned column of the new row; None when a row was there."""
        return tx.scalar(self._statement, values)
