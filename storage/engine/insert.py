"""INSERT, unless the row is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Table
from sqlalchemy.dialects.postgresql import insert

from storage.engine.tx import Row, Tx


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
