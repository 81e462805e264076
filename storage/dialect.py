"""The one construct that SQLAlchemy spells by database: insert, unless it is there."""

from __future__ import annotations

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_or_skip(
    tx: Connection, table: Table, values: dict[str, object]
) -> postgresql.Insert | sqlite.Insert:
    """INSERT ... ON CONFLICT DO NOTHING for this connection's database."""
    if tx.dialect.name == "sqlite":
        return sqlite.insert(table).values(**values).on_conflict_do_nothing()
    return postgresql.insert(table).values(**values).on_conflict_do_nothing()
