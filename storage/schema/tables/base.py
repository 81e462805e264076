"""The one collection of tables, and how their parts are named and spelled."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Integer, MetaData, text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only in a column that is declared exactly INTEGER.
Id = BigInteger().with_variant(Integer, "sqlite")
FALSE = text("false")
ZERO = text("0")
UPDATED_OFTEN = {"fillfactor": "50"}
"""Of a table's pages on PostgreSQL: half of each is kept free for new versions of its rows.

Of a new version it logs what lies between the first column that changed and the last: columns that
an update changes together stand together, at the end.
"""


def one_of(column: str, values: Iterable[Enum]) -> CheckConstraint:
    """The column has one of these values, or is null where that is allowed."""
    allowed = ", ".join(f"'{v.value}'" for v in values)
    return CheckConstraint(f"{column} IN ({allowed})", name=column)


def where(condition: str, flag: str = "") -> dict[str, Any]:
    """The condition of a partial index; with `flag`, only of rows that have this flag set. A
    statement uses the index if it spells the condition out (`storage/statements/literals.py`)."""
    set_ = {"postgresql": f"{flag} AND ", "sqlite": f"{flag} = 1 AND "} if flag else {}
    return {
        f"{database}_where": text(set_.get(database, "") + condition)
        for database in ("postgresql", "sqlite")
    }
