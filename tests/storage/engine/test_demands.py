"""The demands on a database: each that is not met is told in a sentence, with its fix."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pysqlite3.dbapi2 as sqlite3
import pytest
from psycopg import sql

from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.domain.findings import Level
from bot.operations.reports.stuck import database_troubles
from bot.operations.session import schema_problem
from storage.engine.demands import DatabaseFacts, facts_of, judge, refuse_unfit
from storage.schema.migrate import upgrade
from tests.clocks import ShiftedClock
from tests.kit.pooler import pooled
from tests.servers import Postgres

GOOD = DatabaseFacts("PostgreSQL", (16, 4))


@pytest.mark.parametrize(
    ("facts", "name", "level"),
    [
        (replace(GOOD, version=(12, 1)), "database version", Level.WARNING),
        (replace(GOOD, shares_sessions=True), "database sessions", Level.PROBLEM),
        (replace(GOOD, encoding="SQL_ASCII"), "database encoding", Level.PROBLEM),
        (replace(GOOD, isolation="serializable"), "database isolation", Level.PROBLEM),
        (replace(GOOD, refusal="it is a standby"), "database writes", Level.PROBLEM),
        (replace(GOOD, durable=False), "database durability", Level.WARNING),
        (replace(GOOD, room=3), "connections", Level.WARNING),
        (replace(GOOD, took=0.3), "database latency", Level.WARNING),
        (replace(GOOD, ahead=-8.0), "clock", Level.WARNING),
        (DatabaseFacts("SQLite", (3, 45, 1)), "database", Level.PROBLEM),
    ],
)
def test_what_is_missing_is_named_with_its_fix(
    facts: DatabaseFacts, name: str, level: Level
) -> None:
    [found] = [finding for finding in judge(facts) if finding.level is not Level.OK]
    assert (found.name, found.level) == (name, level)
    assert found.fix
    assert "\n" not in found.says


def test_a_good_database_is_taken(blank_database_url: str) -> None:
    refuse_unfit(blank_database_url, ShiftedClock())
    found = judge(facts_of(blank_database_url, ShiftedClock()))
    assert [finding for finding in found if finding.level is Level.PROBLEM] == []


@pytest.fixture
def postgres_database(postgres: Postgres) -> Iterator[str]:
    """The name of a database that a test may make as it likes."""
    postgres.ensure_running()
    yield "made_by_hand"
    postgres.ensure_running()
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("DROP DATABASE made_by_hand WITH (FORCE)")


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_b124_a_database_that_is_not_utf_8_is_refused(
    postgres: Postgres, postgres_database: str, encoding: str
) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            sql.SQL(
                "CREATE DATABASE {} ENCODING {} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
            ).format(sql.Identifier(postgres_database), encoding)
        )
    with pytest.raises(ConfigurationError, match=f"{encoding}.*ENCODING 'UTF8'"):
        refuse_unfit(postgres.url(postgres_database), ShiftedClock())


def test_a_database_that_is_set_to_read_only_is_refused(blank_postgres_url: str) -> None:
    with psycopg.connect(blank_postgres_url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        told = "ALTER DATABASE {} SET default_transaction_read_only = on"
        connection.execute(sql.SQL(told).format(name))
    with pytest.raises(ConfigurationError, match="read only"):
        refuse_unfit(blank_postgres_url, ShiftedClock())


def test_a_limit_of_temporary_files_is_no_full_disk(blank_postgres_url: str) -> None:
    with psycopg.connect(blank_postgres_url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        told = "ALTER DATABASE {} SET temp_file_limit = '64kB'"
        connection.execute(sql.SQL(told).format(name))
    assert facts_of(blank_postgres_url, ShiftedClock()).refusal == ""


@pytest.fixture
def watcher(postgres_url: str) -> Iterator[str]:
    """The address for a role that may read all tables and write none, as monitoring has it."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "CREATE ROLE watcher LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO watcher"
        )
        yield postgres_url.replace("user=postgres", "user=watcher")
        connection.execute("DROP OWNED BY watcher; DROP ROLE watcher")


@pytest.mark.parametrize("more", ["", "ALTER ROLE watcher SET default_transaction_read_only = on"])
def test_the_rights_of_who_looks_are_told_to_them_and_are_no_trouble_of_the_service(
    postgres_url: str, watcher: str, more: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(more.encode())
    troubled = [f for f in judge(facts_of(watcher, ShiftedClock())) if f.level is Level.PROBLEM]
    said = "watcher may not write the tables: run this as postgres, who owns them"
    assert [(finding.name, finding.says) for finding in troubled] == [("database rights", said)]
    assert database_troubles(watcher, ShiftedClock()) == []
    assert schema_problem(watcher) == ""
    with pytest.raises(ConfigurationError, match="watcher may not write"):
        refuse_unfit(watcher, ShiftedClock())


def test_who_may_only_read_is_told_what_keeps_everybody_from_writing(
    postgres_url: str, watcher: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        told = "ALTER DATABASE {} SET default_transaction_read_only = on"
        connection.execute(sql.SQL(told).format(name))
    [trouble] = database_troubles(watcher, ShiftedClock())
    assert "it is set to read only" in trouble.why


def test_the_isolation_of_a_role_and_the_encoding_of_a_url_change_nothing(
    blank_postgres_url: str,
) -> None:
    with psycopg.connect(blank_postgres_url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        told = "ALTER DATABASE {} SET default_transaction_isolation = 'serializable'"
        connection.execute(sql.SQL(told).format(name))
    url = f"{blank_postgres_url}&client_encoding=LATIN1"
    assert facts_of(url, ShiftedClock()).isolation == "read committed"


def test_a_role_that_may_not_make_tables_is_told_so(blank_postgres_url: str) -> None:
    with psycopg.connect(blank_postgres_url, autocommit=True) as connection:
        connection.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC; CREATE ROLE reader LOGIN")
        url = blank_postgres_url.replace("user=postgres", "user=reader")
        try:
            with pytest.raises(DatabaseUnavailable, match=r"DATABASE_URL.*can't be used"):
                upgrade(url)
        finally:
            connection.execute("DROP ROLE reader")


@pytest.mark.parametrize("sessions", [1, 2, 4])
async def test_b123_a_pooler_in_transaction_mode_is_refused(
    blank_postgres_url: str, sessions: int
) -> None:
    async with pooled(blank_postgres_url, sessions) as pooler:
        with pytest.raises(ConfigurationError, match=r"pooler.*session mode"):
            await asyncio.to_thread(refuse_unfit, pooler.url, ShiftedClock())


def test_b125_a_file_that_somebody_holds_or_nobody_may_write_is_named(sqlite_url: str) -> None:
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(file, isolation_level=None)) as held:
        held.execute("BEGIN EXCLUSIVE")
        assert "locked" in facts_of(sqlite_url, ShiftedClock()).refusal
    assert facts_of(sqlite_url, ShiftedClock()).refusal == ""
