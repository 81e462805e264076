"""The one construct that SQLAlchemy spells by database: insert, unless it is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table
from sqlalchemy.dialects import postgresql, sqlite


class InsertOrSkip:
    """INSERT ... ON CONFLICT DO NOTHING, built once for each database. `computed` are columns
    whose values are SQL."""

    def __init__(
        self, table: Table, *returning: ColumnElement[Any], **computed: ColumnElement[Any]
    ) -> None:
        self._by_database = {
            name: insert(table).values(**computed).on_conflict_do_nothing().returning(*returning)
            for name, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
        }

    def row(self, tx: Connection, values: Mapping[str, object]) -> Row[*tuple[Any, ...]] | None:
        """The returned columns of the new row; None when a row was there."""
        return tx.execute(self._by_database[tx.dialect.name], values).first()

    def run(self, tx: Connection, values: Mapping[str, object]) -> Any | None:
        """The first returned column of the new row; None when a row was there."""
        return tx.execute(self._by_database[tx.dialect.name], values).scalar()


def insert_or_skip(
    tx: Connection, table: Table, values: dict[str, object]
) -> postgresql.Insert | sqlite.Insert:
    """INSERT ... ON CONFLICT DO NOTHING for this connection's database."""
    if tx.dialect.name == "sqlite":
        return sqlite.insert(table).values(**values).on_conflict_do_nothing()
    return postgresql.insert(table).values(**values).on_conflict_do_nothing()
