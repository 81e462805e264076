"""The schema: made by the migrations as the tables say, by one process, whole or not at all."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, text

from bot.domain.decisions.schema import Schema
from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from storage.engine.database import parsed_url
from storage.schema.migrate import FIRST, NEWEST, schema_of, upgrade
from storage.schema.revisions import REVISION_TABLE
from storage.schema.tables import metadata
from storage.statements.tx import StatementFailed
from tests.limits import PATIENCE
from tests.servers import Postgres
from tests.storage.kit import Hand

VERSIONS = ("alembic_version", REVISION_TABLE)
_UPGRADE = "import sys; from storage.schema.migrate import upgrade; print(upgrade(sys.argv[1]))"
_DIES_BEFORE_THE_COMMIT = """
import os, sys
from storage.schema import migrate
applied = migrate.apply_missing
def apply_and_die(*given):
    applied(*given)
    os._exit(9)
migrate.apply_missing = apply_and_die
migrate.upgrade(sys.argv[1])
"""


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    engine = create_engine(parsed_url(url))
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def started(program: str, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def definitions(connection: Connection) -> dict[str, str]:
    """The database's own account of every index and constraint of ours."""
    if connection.dialect.name == "sqlite":
        rows = connection.execute(
            text("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
        )
    else:
        rows = connection.execute(
            text(
                "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' "
                "UNION ALL SELECT conrelid::regclass || '.' || conname, "
                "pg_get_constraintdef(oid) FROM pg_constraint "
                "WHERE connamespace = 'public'::regnamespace "
                "UNION ALL SELECT adrelid::regclass || '.' || attname, pg_get_expr(adbin, adrelid) "
                "FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum "
                "UNION ALL SELECT relname, array_to_string(reloptions, ',') FROM pg_class "
                "WHERE relnamespace = 'public'::regnamespace AND reloptions IS NOT NULL"
            )
        )
    return {
        name: " ".join(sql.split())
        for name, sql in rows
        if not any(version in name for version in VERSIONS)
    }


def test_the_migrations_make_what_the_tables_say(blank_database_url: str) -> None:
    upgrade(blank_database_url)
    with connected(blank_database_url) as connection:
        opts = {
            "compare_server_default": connection.dialect.name == "postgresql",
            "include_name": lambda name, kind, _: kind != "table" or name not in VERSIONS,
        }
        context = MigrationContext.configure(connection, opts=opts)
        with warnings.catch_warnings():
            # PostgreSQL tells generated columns in words of its own; `definitions` compares those.
            warnings.filterwarnings("ignore", message="Computed default on outbox.watched")
            assert compare_metadata(context, metadata) == []
        migrated = definitions(connection)
        metadata.drop_all(connection)
        metadata.create_all(connection)
        assert migrated == definitions(connection)


def test_the_newest_scripts_name_begins_with_its_revision() -> None:
    assert ScriptDirectory("storage/schema/migrations").get_current_head() == NEWEST


@pytest.mark.long
def test_b86_processes_that_start_at_once_all_come_up(
    blank_database_url: str, pytestconfig: pytest.Config
) -> None:
    """Imports and the migration alone; `tests/e2e/test_several.py` starts four whole processes."""
    many = 4 if pytestconfig.getoption("--deep") else 2
    processes = [started(_UPGRADE, blank_database_url) for _ in range(many)]
    said = [process.communicate(timeout=PATIENCE) for process in processes]
    assert [process.returncode for process in processes] == [0] * many, said
    assert {out.strip() for out, _ in said} == {NEWEST}
    assert schema_of(blank_database_url) == Schema(NEWEST, FIRST)


def test_a_database_at_the_newest_schema_is_left_as_it_is(database_url: str) -> None:
    assert upgrade(database_url) == NEWEST


def test_a_database_that_needs_a_newer_version_is_refused_with_what_to_do(
    database_url: str,
) -> None:
    with connected(database_url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        connection.commit()
    with pytest.raises(ConfigurationError, match=r"knows 9999.*newer version of Answerback"):
        upgrade(database_url)
    assert schema_of(database_url) == Schema(NEWEST, "9999")


def test_a_process_that_dies_in_a_migration_leaves_the_schema_as_it_was(
    blank_database_url: str,
) -> None:
    died = started(_DIES_BEFORE_THE_COMMIT, blank_database_url)
    _, complaints = died.communicate(timeout=PATIENCE)
    assert died.returncode == 9, complaints
    with connected(blank_database_url) as connection:
        assert inspect(connection).get_table_names() == []
    assert upgrade(blank_database_url) == NEWEST


def test_a_database_that_is_away_is_unavailable(postgres_url: str, postgres: Postgres) -> None:
    postgres.stop()
    with pytest.raises(DatabaseUnavailable):
        upgrade(postgres_url)


def test_the_database_has_our_clocks(hand: Hand) -> None:
    clocks = "answerback_now(), answerback_lease_now(), answerback_lease_clock()"
    began = hand.clock.wall()
    [(now, lease_now, name)] = hand.rows(f"SELECT {clocks}")
    [(later, lease_later, same)] = hand.rows(f"SELECT {clocks}")
    assert began - 0.01 <= now <= hand.clock.wall() + 0.01
    assert later >= now
    assert lease_later >= lease_now
    assert same == name


BAD = {
    "a run that ended has an ending": "UPDATE runs SET state = 'ended', holder = NULL",
    "a run that has not ended has none": "UPDATE runs SET ending = 'answered'",
    "a run that ended has a time": "UPDATE runs SET state = 'ended', holder = NULL, "
    "ending = 'answered'",
    "a run that runs has a holder": "UPDATE runs SET holder = NULL",
    "a run that waits has no holder": "UPDATE runs SET state = 'waiting'",
    "a run has one of four states": "UPDATE runs SET state = 'lost', holder = NULL",
    "a run has one of the endings": "UPDATE runs SET state = 'ended', holder = NULL, "
    "ended_at = 1, ending = 'forgotten'",
    "a part that is being sent has a holder": "UPDATE outbox SET holder = NULL",
    "a part that waits has no holder": "UPDATE outbox SET state = 'pending'",
    "a part that was sent has a receipt": "UPDATE outbox SET state = 'sent', holder = NULL",
    "a part has one of eight states": "UPDATE outbox SET state = 'lost', holder = NULL",
    "a part has one of four kinds": "UPDATE outbox SET kind = 'advertisement'",
    "a step that is done has a result": "INSERT INTO steps (run, key, state, safe, fence, "
    "started_at) SELECT id, 'k', 'done', false, 1, 1 FROM runs",
    "a run's part exists once": "INSERT INTO outbox (account, chat, run, kind, part, state, "
    "standalone, created_at, text, wire) SELECT account, chat, run, kind, part, 'pending', false, "
    "1, '', '' FROM outbox",
    "a chat is of a kind we know": "UPDATE chats SET kind = 'crowd'",
    "an address leads to one chat": "INSERT INTO chat_addresses SELECT * FROM chat_addresses",
    "a run belongs to a chat": "UPDATE runs SET chat = 4711",
    "a life of a process is told once": "INSERT INTO holders (name, boot, clock, host, pid, "
    "role, started_at, renewed_at, seen_at) SELECT name, boot, clock, host, pid, role, 1, 1, 1 "
    "FROM holders",
}


@pytest.mark.parametrize("rule", BAD)
def test_the_database_itself_refuses_what_must_not_be(hand: Hand, rule: str) -> None:
    hand.parts(hand.running(), begun=True)
    with pytest.raises(StatementFailed):
        hand.rows(BAD[rule] if "SELECT" in BAD[rule] else BAD[rule] + " RETURNING 1")
