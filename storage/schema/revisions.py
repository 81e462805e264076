"""The two revisions of a database, read and set.

`alembic_version` holds the floor: every version of this program asks for it at its start, and
refuses to work if it does not know it. `answerback_revision` holds the newest revision that was
applied, from which Alembic goes on. Version 0.1.0 knew only the former: a database without the
latter is at its floor.
"""

from __future__ import annotations

from bot.domain.decisions.schema import Schema
from storage.statements.tx import Tx

REVISION_TABLE = "answerback_revision"

_TABLES = {
    True: "SELECT name FROM sqlite_master WHERE name IN ('alembic_version', 'answerback_revision')",
    False: "SELECT relname FROM pg_class WHERE oid IN "
    "(to_regclass('alembic_version'), to_regclass('answerback_revision'))",
}
"""By whether it is SQLite."""
_FLOOR = "SELECT version_num FROM alembic_version"
_REVISION = "SELECT version_num FROM answerback_revision"
_MAKE_FLOOR = (
    "CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)
_CLEAR_FLOOR = "DELETE FROM alembic_version"
_SET_FLOOR = {
    True: "INSERT INTO alembic_version VALUES (:floor)",
    False: "INSERT INTO alembic_version VALUES (%(floor)s)",
}


def schema_of(tx: Tx) -> Schema | None:
    """The schema of a database, None for one without ours. The floor of a sealed one is the kind of
    its seal."""
    there = tables(tx)
    floor = _only(tx, _FLOOR) if "alembic_version" in there else None
    if floor is None:
        return None
    revision = _only(tx, _REVISION) if REVISION_TABLE in there else None
    return Schema(revision or floor, floor)


def tables(tx: Tx) -> set[str]:
    """Those of the two tables that are there."""
    return {str(name) for (name,) in tx.run(_TABLES[tx.is_sqlite])}


def set_floor(tx: Tx, floor: str) -> None:
    """Let only programs begin that know this revision."""
    tx.run(_MAKE_FLOOR)
    tx.run(_CLEAR_FLOOR)
    tx.run(_SET_FLOOR[tx.is_sqlite], {"floor": floor})


def _only(tx: Tx, query: str) -> str | None:
    rows = tx.run(query)
    return str(rows[0][0]) if rows else None
