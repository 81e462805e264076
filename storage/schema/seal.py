"""A sealed database: one row that says why, a floor that no version of this program knows, and
triggers that refuse every change.

The floor keeps processes from starting, also those of earlier versions; the triggers stop those
that have started, whenever they come to write. What a seal needs is made with it and goes with it,
so that a database which was opened has the schema and nothing else.
"""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Table

from bot.domain.decisions.seals import Seal, SealKind
from storage.engine.sqlite import SEALED
from storage.schema.revisions import schema_of
from storage.schema.tables import metadata
from storage.statements.tx import Tx

_MAKE = "CREATE TABLE answerback_seal (kind TEXT, copy TEXT, place TEXT, revision TEXT)"
_WRITE = {
    True: "INSERT INTO answerback_seal VALUES (:kind, :copy, :place, :revision)",
    False: "INSERT INTO answerback_seal VALUES (%(kind)s, %(copy)s, %(place)s, %(revision)s)",
}
_KIND = {
    True: "UPDATE answerback_seal SET kind = :kind",
    False: "UPDATE answerback_seal SET kind = %(kind)s",
}
_READ = "SELECT kind, copy, place, revision FROM answerback_seal"
_REVISION = {
    True: "UPDATE alembic_version SET version_num = :revision",
    False: "UPDATE alembic_version SET version_num = %(revision)s",
}
"""By whether it is SQLite."""

_REFUSE = f"""
CREATE FUNCTION answerback_sealed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '{SEALED}' USING ERRCODE = 'read_only_sql_transaction';
END $$
"""
_TRIGGERS = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'answerback_seal%'"


def seal_of(tx: Tx) -> Seal | None:
    """The seal of a database, None of one that is open."""
    there = "SELECT count(*) FROM sqlite_master WHERE name = 'answerback_seal'"
    if not tx.is_sqlite:
        there = "SELECT count(to_regclass('answerback_seal'))"
    [(count,)] = tx.run(there)
    if not count:
        return None
    [(kind, copy, place, revision)] = tx.run(_READ)
    return Seal(SealKind(kind), copy, place, revision)


def set_seal(tx: Tx, kind: SealKind, copy: str, place: str) -> None:
    """Seal an open database that has our schema; `copy` and `place` as in a seal."""
    schema = schema_of(tx)
    assert schema is not None
    seal = Seal(kind, copy, place, schema.floor)
    tx.run(_MAKE)
    tx.run(_WRITE[tx.is_sqlite], asdict(seal))
    tx.run(_REVISION[tx.is_sqlite], {"revision": seal.kind.value})
    refuse_changes(tx)


def change_seal(tx: Tx, kind: SealKind) -> None:
    """Give a sealed database another reason."""
    tx.run(_KIND[tx.is_sqlite], {"kind": kind.value})
    tx.run(_REVISION[tx.is_sqlite], {"revision": kind.value})


def lift_seal(tx: Tx, seal: Seal) -> None:
    """Open a database again."""
    allow_changes(tx)
    tx.run("DROP TABLE answerback_seal")
    tx.run(_REVISION[tx.is_sqlite], {"revision": seal.revision})


def refuse_changes(tx: Tx) -> None:
    """From the commit on, no table takes a change from anybody."""
    if not tx.is_sqlite:
        tx.run(_REFUSE)
    for table in metadata.sorted_tables:
        for statement in _guards(table, sqlite=tx.is_sqlite):
            tx.run(statement)


def allow_changes(tx: Tx) -> None:
    """Undo `refuse_changes`. On PostgreSQL all tables are locked until the commit."""
    if not tx.is_sqlite:
        tx.run("DROP FUNCTION answerback_sealed() CASCADE")
        return
    for (name,) in tx.run(_TRIGGERS):
        tx.run(f"DROP TRIGGER {name}")


def _guards(table: Table, *, sqlite: bool) -> list[str]:
    if not sqlite:
        changes = "INSERT OR UPDATE OR DELETE OR TRUNCATE"
        act = "EXECUTE FUNCTION answerback_sealed()"
        return [f"CREATE TRIGGER answerback_sealed BEFORE {changes} ON {table.name} {act}"]
    return [
        f"CREATE TRIGGER answerback_sealed_{table.name}_{change} BEFORE {change} ON {table.name} "
        f"BEGIN SELECT RAISE(ABORT, '{SEALED}'); END"
        for change in ("insert", "update", "delete")
    ]
