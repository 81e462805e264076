"""Upgrades one process at a time: a schema that the last release can work on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, create_engine, text

from bot.domain.decisions.schema import Schema
from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.operations.session import schema_problem
from storage.engine.database import parsed_url
from storage.schema import migrate
from storage.schema.migrate import FIRST, NEWEST, apply_missing, schema_of, upgrade
from tests.limits import PATIENCE, until
from tests.releases import last_release
from tests.releases.expanding import TableShape, new_values, shapes, taken_away

RELEASE = last_release()
VERSIONS = Path(migrate.__file__).parent / "migrations" / "versions"
KNOWN_BEFORE = {
    "ck_inbound_command export": "0.1.0 never reads the command of a message",
    "ck_inbound_command forget": "as export",
}
"""Values that a column may have since the last release, by `<constraint> <value>`, and why that
release works on with a row that has it: it never reads that column, say. Where it does read it, the
value is written one release later than it can be read (CONTRIBUTING.md)."""


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    engine = create_engine(parsed_url(url))
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def at_the_last_release(url: str) -> dict[str, TableShape]:
    """Make the database as the last release makes it, which wrote one revision only."""
    with migrate.locked(url) as connection, connection.begin():
        apply_missing(connection, RELEASE.revision)
        connection.execute(text("DROP TABLE answerback_revision"))
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{RELEASE.revision}'"))
    with connected(url) as connection:
        return shapes(connection)


def test_a_migration_that_was_released_is_never_changed() -> None:
    now = {path.name: path.read_bytes() for path in VERSIONS.glob("*.py")}
    released = RELEASE.migrations()
    assert {name: now.get(name) for name in released} == released


def test_what_came_since_the_last_release_takes_nothing_from_its_programs(
    blank_database_url: str,
) -> None:
    before = at_the_last_release(blank_database_url)
    upgrade(blank_database_url)
    with connected(blank_database_url) as connection:
        after = shapes(connection)
    found = schema_of(blank_database_url)
    assert found is not None
    if found.floor <= RELEASE.revision:
        assert taken_away(before, after) == []
    assert [value for value in new_values(before, after) if value not in KNOWN_BEFORE] == []


A = """CREATE TABLE a (n INTEGER NOT NULL, kind TEXT, note TEXT NOT NULL DEFAULT '',
    CONSTRAINT ck_kind CHECK (kind IN ('x', 'y')), CONSTRAINT ck_n CHECK (n > 0))"""
C = "CREATE UNIQUE INDEX uq_c ON c (n) WHERE kind IN ('x')"
BEFORE = [A, "CREATE TABLE b (n INTEGER)", "CREATE TABLE c (n INTEGER, kind TEXT)", C]
TAKEN_AWAY = {
    "a: the table is gone": ["DROP TABLE a"],
    "a: the column note is gone": ["ALTER TABLE a DROP COLUMN note"],
    "b: n is TEXT and was INTEGER": ["DROP TABLE b", "CREATE TABLE b (n TEXT)"],
    "b: n may not be null any more": ["DROP TABLE b", "CREATE TABLE b (n INTEGER NOT NULL)"],
    "b: m is new, and a row without it is refused": [
        "DROP TABLE b",
        "CREATE TABLE b (n INTEGER, m INTEGER NOT NULL)",
    ],
    "b: uq is new: UNIQUE INDEX ['n'] {}": ["CREATE UNIQUE INDEX uq ON b (n)"],
    "b: ck is new: CHECK n > 1 OR m > 1": [
        "DROP TABLE b",
        "CREATE TABLE b (n INTEGER, m INTEGER, CONSTRAINT ck CHECK (n > 1 OR m > 1))",
    ],
    "a: ck_kind was CHECK kind IN ('x', 'y') and is CHECK kind IN ('x')": [
        "DROP TABLE a",
        A.replace(", 'y'", ""),
    ],
    "a: ck_n was CHECK n > 0 and is CHECK n > 9": [
        "DROP TABLE a",
        A.replace("n > 0", "n > 9"),
    ],
    "c: uq_c was UNIQUE INDEX ['n'] {'sqlite_where': \"kind IN ('x')\"} and is "
    "UNIQUE INDEX ['n'] {'sqlite_where': \"kind IN ('x', 'y')\"}": [
        "DROP INDEX uq_c",
        C.replace("'x'", "'x', 'y'"),
    ],
    "a: note has the default None and had ''": [
        "DROP TABLE a",
        A.replace(" DEFAULT ''", ""),
    ],
}
ADDED = [
    "CREATE TABLE d (n INTEGER NOT NULL)",
    "ALTER TABLE b ADD COLUMN m INTEGER CONSTRAINT ck_m CHECK (m > 0)",
    "ALTER TABLE b ADD COLUMN o TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX ix ON b (n)",
    "CREATE UNIQUE INDEX uq ON b (n, m)",
    "DROP TABLE a",
    A.replace("'y'", "'y', 'z'"),
]


def both_shapes(changes: list[str]) -> tuple[dict[str, TableShape], dict[str, TableShape]]:
    """The shapes before and after these changes."""
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        for statement in BEFORE:
            connection.execute(text(statement))
        before = shapes(connection)
        for statement in changes:
            connection.execute(text(statement))
        after = shapes(connection)
    engine.dispose()
    return before, after


@pytest.mark.parametrize("fault", TAKEN_AWAY)
def test_a_change_that_the_last_release_could_not_bear_is_found(fault: str) -> None:
    assert taken_away(*both_shapes(TAKEN_AWAY[fault])) == [fault]


def test_what_only_adds_is_none_and_a_value_is_named() -> None:
    before, after = both_shapes(ADDED)
    assert taken_away(before, after) == []
    assert new_values(before, after) == ["ck_kind z"]


def test_a_database_of_the_last_release_stays_open_to_its_programs(
    blank_database_url: str,
) -> None:
    at_the_last_release(blank_database_url)
    assert schema_of(blank_database_url) == Schema(RELEASE.revision, RELEASE.revision)
    assert upgrade(blank_database_url) == NEWEST
    assert schema_of(blank_database_url) == Schema(NEWEST, FIRST)
    assert upgrade(blank_database_url) == NEWEST


def test_a_newer_database_that_only_had_things_added_is_worked_on_and_left_as_it_is(
    database_url: str,
) -> None:
    with connected(database_url) as connection:
        connection.execute(text("UPDATE answerback_revision SET version_num = '9999'"))
        connection.commit()
    assert upgrade(database_url) == "9999"
    assert schema_problem(database_url) == ""
    assert schema_of(database_url) == Schema("9999", FIRST)


def test_after_a_migration_that_took_something_away_older_programs_are_told_to_go(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(VERSIONS.parent, tmp_path / "migrations")
    (tmp_path / "migrations" / "versions" / "9998_less.py").write_text(
        f"revision, down_revision, floor = '9998', '{NEWEST}', '9997'\n"
        "def upgrade(): pass\ndef downgrade(): pass\n"
    )
    with monkeypatch.context() as newer:
        newer.setattr(migrate, "_SCRIPTS", tmp_path / "migrations")
        newer.setattr(migrate, "NEWEST", "9998")
        with migrate.locked(database_url) as connection, connection.begin():
            assert apply_missing(connection, "9998") == "9998"
        assert schema_of(database_url) == Schema("9998", "9997")
    with pytest.raises(ConfigurationError, match="which needs a program that knows 9997"):
        upgrade(database_url)
    assert "use the newer Answerback" in schema_problem(database_url)


def test_each_migration_lets_go_of_its_tables_before_the_next_begins(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(VERSIONS.parent, tmp_path / "migrations")
    for revision, before, act in (("9997", NEWEST, "pass"), ("9998", "9997", "1 / 0")):
        (tmp_path / "migrations" / "versions" / f"{revision}_more.py").write_text(
            f"revision, down_revision = '{revision}', '{before}'\ndef upgrade(): {act}\n"
        )
    monkeypatch.setattr(migrate, "_SCRIPTS", tmp_path / "migrations")
    monkeypatch.setattr(migrate, "_REVISIONS", ["0001", NEWEST, "9997", "9998"])
    monkeypatch.setattr(migrate, "NEWEST", "9998")
    with pytest.raises(ZeroDivisionError):
        upgrade(database_url)
    assert schema_of(database_url) == Schema("9997", FIRST)


async def test_a_migration_keeps_nobody_waiting_while_it_waits_for_a_table(
    blank_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_the_last_release(blank_postgres_url)
    monkeypatch.setattr(migrate, "_WAITS", "50ms")
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    with ThreadPoolExecutor() as threads, psycopg.connect(blank_postgres_url) as busy:
        busy.execute("SELECT count(*) FROM holders")
        migrating = threads.submit(upgrade, blank_postgres_url)
        with psycopg.connect(blank_postgres_url, autocommit=True) as other:
            other.execute(f"SET statement_timeout = '{PATIENCE:.0f}s'")
            await until(lambda: other.execute(waits).fetchall() == [(1,)])
            other.execute("SELECT count(*) FROM holders")  # it would wait behind the migration
            assert not migrating.done()
        busy.commit()
        assert migrating.result() == NEWEST


def test_tables_that_are_never_free_are_told_of(
    blank_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_the_last_release(blank_postgres_url)
    monkeypatch.setattr(migrate, "_WAITS", "20ms")
    monkeypatch.setattr(migrate, "_TRIES", 2)
    with psycopg.connect(blank_postgres_url) as busy:
        busy.execute("SELECT count(*) FROM holders")
        with pytest.raises(DatabaseUnavailable, match="end long transactions"):
            upgrade(blank_postgres_url)
    assert upgrade(blank_postgres_url) == NEWEST
