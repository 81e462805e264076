"""The one construct that SQLAlchemy spells by database: insert, unless it is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


class InsertOrSkip:
    """INSERT ... ON CONFLICT DO NOTHING, built once for each database. `computed` are columns
    whose values are SQL."""

    def __init__(
        self, table: Table, returning: Column[Any], **computed: ColumnElement[Any]
    ) -> None:
        self._by_database = {
            "sqlite": sqlite.insert(table)
            .values(**computed)
            .on_conflict_do_nothing()
            .returning(returning),
            "postgresql": postgresql.insert(table)
            .values(**computed)
            .on_conflict_do_nothing()
            .returning(returning),
        }

    def run(self, tx: Connection, values: Mapping[str, object]) -> Any | None:
        """The new row's returned column; None when a row was there."""
        return tx.execute(self._by_database[tx.dialect.name], values).scalar()


def insert_or_skip(
    tx: Connection, table: Table, values: dict[str, object]
) -> postgresql.Insert | sqlite.Insert:
    """INSERT ... ON CONFLICT DO NOTHING for this connection's database."""
    if tx.dialect.name == "sqlite":
        return sqlite.insert(table).values(**values).on_conflict_do_nothing()
    return postgresql.insert(table).values(**values).on_conflict_do_nothing()
