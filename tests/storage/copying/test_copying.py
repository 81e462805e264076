"""A copy to another database: all or nothing of it, and at most one of the two is in use."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pysqlite3.dbapi2 as sqlite3
import pytest
import sqlalchemy as sa

from bot.clock import SystemClock
from bot.domain.decisions.seals import DatabaseSealed
from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from storage import holders, runs
from storage.copying import CopyFailed, Progress, Stage, ends, reopen
from storage.engine.database import parsed_url
from storage.engine.demands import refuse_unfit
from storage.engine.name_lock import NameLock
from storage.schema.migrate import NEWEST, upgrade
from storage.schema.tables import events, metadata, secrets
from storage.statements.tx import POSTGRES
from tests.limits import PATIENCE
from tests.storage.copying.copies import HARD_TEXT, LEASE, Pair, beside, copied, everything, fill
from tests.storage.kit import opened
from tests.storage.schema.test_schema import connected as inspected
from tests.storage.schema.test_schema import definitions

_DIES_WHILE_IT_COPIES = """
import os, signal, sys
from storage.copying import Stage
from tests.storage.copying.copies import copied
def die(progress):
    if progress.table == "steps":
        os.kill(os.getpid(), signal.SIGKILL)
copied(sys.argv[1], sys.argv[2], die)
"""

_REFUSED = (psycopg.Error, sqlite3.Error)


def other_of(url: str, request: pytest.FixtureRequest) -> str:
    kind = "blank_postgres_url" if url.startswith("sqlite") else "blank_sqlite_url"
    return str(request.getfixturevalue(kind))


@pytest.fixture
def pair(database_url: str, request: pytest.FixtureRequest) -> Pair:
    with beside(database_url) as tx:
        fill(tx)
    return Pair(database_url, other_of(database_url, request))


def test_every_row_is_the_same_in_the_new_database_and_nothing_else_is_there(
    pair: Pair, request: pytest.FixtureRequest
) -> None:
    before = everything(pair.source)
    unfilled = [name for name, rows in before.items() if not rows]
    assert unfilled == [], "give it a row in `tests/storage/copying/copies.py`"
    with beside(pair.source) as tx:
        logged = tx.scalars(sa.select(sa.func.count()).select_from(events)).one()
    copied_ = pair.copy()
    assert everything(pair.target) == before
    assert sum(table.rows for table in copied_.tables) == sum(map(len, before.values())) + logged
    assert upgrade(pair.target) == NEWEST
    native = request.getfixturevalue(
        "sqlite_url" if pair.target.startswith("sqlite") else "postgres_url"
    )
    with inspected(pair.target) as made, inspected(native) as expected:
        assert definitions(made) == definitions(expected)
        names = [set(sa.inspect(each).get_table_names()) for each in (made, expected)]
        assert names[0] == names[1]
    with opened(pair.target) as hand:
        [(last,)] = hand.rows("SELECT max(id) FROM runs")
        assert hand.ready(hand.new_chat()).id == last + 1
        assert hand.rows("SELECT who FROM events WHERE what = 'database copied'") == [("ann@desk",)]


@pytest.mark.alternating(1)
def test_the_way_back_brings_everything_back(pair: Pair, tmp_path: Path) -> None:
    before = everything(pair.source)
    pair.copy()
    again = f"sqlite:///{tmp_path}/folder/again.db"
    copied(pair.target, again)
    assert everything(again) == before


def test_a_folder_in_which_no_database_can_be_made_is_named(
    sqlite_url: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for place in ("file/new.db", "file/folder/new.db"):
        with pytest.raises(ConfigurationError, match=rf"{place} can't be made \(Not a directory\)"):
            copied(sqlite_url, f"sqlite:///{tmp_path}/{place}")


def test_a_number_is_never_given_twice_after_its_row_is_gone(
    postgres_url: str, request: pytest.FixtureRequest
) -> None:
    with opened(postgres_url) as hand:
        hand.mark_dead(hand.holder)
        last = hand.ready(hand.new_chat()).id
        hand.do(lambda tx: tx.run("DELETE FROM runs"))
    target = str(request.getfixturevalue("blank_postgres_url"))
    copied(postgres_url, target)
    with opened(target) as hand:
        assert hand.ready(hand.new_chat()).id == last + 1


@pytest.fixture
def forgotten() -> Iterator[sa.Table]:
    """A table that nobody thought of when the copy was written."""
    table = sa.Table(
        "forgotten",
        metadata,
        sa.Column("a_run", sa.BigInteger, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("exact", sa.Double),
        sa.Column("flag", sa.Boolean),
        sa.Column("order", sa.Text),
        sa.Column("twice", sa.Text, sa.Computed("'2' || a_run", persisted=True)),
    )
    yield table
    metadata.remove(table)


def test_a_table_that_is_new_is_copied_without_a_word_about_it_here(
    postgres_url: str, request: pytest.FixtureRequest, forgotten: sa.Table
) -> None:
    target = str(request.getfixturevalue("blank_postgres_url"))
    upgrade(target)
    with beside(postgres_url) as tx, beside(target) as there:
        fill(tx)
        for each in (tx, there):
            each.run(str(sa.schema.CreateTable(forgotten).compile(dialect=POSTGRES)))
        row = {"a_run": 3, "exact": 1e-300, "flag": False, "order": HARD_TEXT}
        tx.execute(sa.insert(forgotten).values(**row))
    before = everything(postgres_url)
    assert len(before["forgotten"]) == 1
    copied(postgres_url, target)
    assert everything(target) == before


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(Stage.COPYING, marks=pytest.mark.alternating(0)),
        pytest.param(Stage.INDEXING, marks=pytest.mark.alternating(1)),
        *(Stage.COMPARING, Stage.SEALED, Stage.MOVED),
    ],
)
def test_wherever_a_copy_ends_one_database_can_be_used_at_most_and_the_next_call_goes_on(
    pair: Pair, stage: Stage
) -> None:
    before = everything(pair.source)
    pair.killed_at(stage)
    with pytest.raises(DatabaseSealed):
        upgrade(pair.target)
    with beside(pair.target) as tx, pytest.raises(_REFUSED, match="sealed"):
        tx.run("INSERT INTO secrets VALUES ('other', 'one')")
    if stage is Stage.MOVED:
        with pytest.raises(DatabaseSealed):
            upgrade(pair.source)
    else:
        with opened(pair.source) as hand:
            hand.mark_dead(hand.holder)
            hand.do(lambda tx: tx.run("DELETE FROM accounts WHERE account = 'bot'"))
            hand.do(lambda tx: tx.run("DELETE FROM holders WHERE name = 'host/1'"))
    pair.copy()
    assert everything(pair.target) == before
    assert upgrade(pair.target) == NEWEST


@pytest.mark.alternating(0)
def test_a_copy_that_is_killed_is_made_again_by_the_same_call(pair: Pair) -> None:
    before = everything(pair.source)
    died = subprocess.run(
        [sys.executable, "-c", _DIES_WHILE_IT_COPIES, pair.source, pair.target],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    with pytest.raises(DatabaseSealed, match="unfinished copy"):
        upgrade(pair.target)
    assert upgrade(pair.source) == NEWEST
    pair.copy()
    assert everything(pair.target) == before


@pytest.mark.alternating(0)
def test_the_source_says_in_one_sentence_where_everything_went(pair: Pair) -> None:
    pair.copy()
    place = ends.place_of(parsed_url(pair.target))
    with pytest.raises(ConfigurationError) as refused:
        upgrade(pair.source)
    assert str(refused.value).startswith(f"DATABASE_URL: the database has moved to {place};")
    with pytest.raises(DatabaseSealed, match="has moved"):
        pair.copy()


def test_a_place_is_told_without_user_and_password() -> None:
    url = parsed_url("postgresql://ann:s3cret@db.internal:6432/bot?sslmode=require")
    assert ends.place_of(url) == "postgresql://db.internal:6432/bot"


def test_a_process_that_slept_through_the_copy_can_write_nothing(pair: Pair) -> None:
    with opened(pair.source) as asleep:
        asleep.mark_dead(asleep.holder)
        chat = asleep.new_chat()
        pair.copy()
        for move in (
            asleep.new_holder,
            lambda: asleep.ready(chat),
            lambda: asleep.do(lambda tx: tx.run("DELETE FROM accounts")),
        ):
            with pytest.raises(DatabaseUnavailable):
                move()


def test_a_process_that_is_at_work_is_named_and_nothing_is_done(pair: Pair) -> None:
    with opened(pair.source) as hand:
        holder = hand.new_holder("web-1/1")
        name = NameLock(hand.db.url, "web-1")
        with beside(pair.source) as tx:
            name.take(tx)
            with pytest.raises(CopyFailed, match=r"in use by.*web-1/1 \(all, process 1 on host\)"):
                pair.copy()
        name.release()
        for one in (holder, hand.holder):
            hand.mark_dead(one)
    assert not Path(pair.target.removeprefix("sqlite:///")).exists()
    pair.copy()


def test_who_was_killed_on_sqlite_is_not_waited_for(
    sqlite_url: str, blank_postgres_url: str
) -> None:
    with opened(sqlite_url) as hand:
        run = hand.running()
    copied(sqlite_url, blank_postgres_url)
    with beside(blank_postgres_url) as tx:
        found = runs.find(tx, run.id)
        assert found is not None
        assert found.holder == run.holder
        assert holders.mark_overdue_dead(tx, LEASE) == [run.holder]


def test_while_a_copy_is_at_work_nobody_writes_starts_or_copies(pair: Pair) -> None:
    met: list[str] = []

    def tell(progress: Progress) -> None:
        if progress.stage is not Stage.COMPARING or met:
            return
        with beside(pair.source) as tx:
            if not tx.is_sqlite:
                tx.run("SET lock_timeout = '10ms'")
            with pytest.raises(_REFUSED, match="lock"):
                tx.run("UPDATE told SET at = 0")
        for url in (pair.source, pair.target):
            with pytest.raises(ConfigurationError, match="`answerback db copy` is at work on it"):
                refuse_unfit(url, SystemClock())
        with pytest.raises(ConfigurationError, match="another `answerback db copy`"):
            pair.copy()
        met.append("all of it")

    pair.copy(tell)
    assert met


@pytest.mark.alternating(1)
def test_a_database_that_holds_anything_is_refused(
    pair: Pair, request: pytest.FixtureRequest
) -> None:
    upgrade(pair.target)
    with opened(pair.target):
        pass
    before = everything(pair.target)
    with pytest.raises(ConfigurationError, match=r"is not empty \(accounts, holders\)"):
        pair.copy()
    assert everything(pair.target) == before
    assert upgrade(pair.source) == NEWEST


def test_tables_of_somebody_else_are_left_alone(postgres_url: str, blank_sqlite_url: str) -> None:
    with beside(blank_sqlite_url) as tx:
        tx.run("CREATE TABLE files (theirs TEXT)")
    with pytest.raises(ConfigurationError, match=r"has tables of others \(files\)"):
        copied(postgres_url, blank_sqlite_url)


@pytest.mark.alternating(0)
def test_another_schema_is_refused_on_either_side(pair: Pair) -> None:
    upgrade(pair.target)
    for url, words in ((pair.target, "both must be the same"), (pair.source, "db upgrade")):
        with beside(url) as tx:
            tx.run("UPDATE answerback_revision SET version_num = '0000'")
        with pytest.raises(ConfigurationError, match=words):
            pair.copy()


def test_a_nul_that_postgresql_can_not_hold_becomes_what_intake_makes_of_it(
    sqlite_url: str, blank_postgres_url: str
) -> None:
    with beside(sqlite_url) as tx:
        for name, value in (("a", "b\0c"), ("d", "\\x00")):
            tx.execute(sa.insert(secrets).values(name=name, value=value))
    told = copied(sqlite_url, blank_postgres_url)
    assert everything(blank_postgres_url)["secrets"] == [("a", "b\ufffdc"), ("d", "\\x00")]
    assert sum(table.cleaned for table in told.tables) == 1


@pytest.mark.alternating(1)
def test_a_row_that_arrives_different_gives_the_copy_up(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind: Any = ends._PostgresEnd if pair.source.startswith("sqlite") else ends._SqliteEnd
    fills = kind.fill

    def damages(self: Any, table: sa.Table, rows: Any) -> None:
        fills(self, table, rows)
        if table.name == "told":
            self.tx.run("UPDATE told SET at = at + 1e-9")

    monkeypatch.setattr(kind, "fill", damages)
    with pytest.raises(CopyFailed, match=r"told differs: 1 rows .* the source is as it was"):
        pair.copy()
    assert upgrade(pair.source) == NEWEST
    with pytest.raises(DatabaseSealed, match="unfinished"):
        upgrade(pair.target)


@pytest.mark.alternating(0)
def test_an_operators_word_opens_the_source_again_but_no_unfinished_copy(pair: Pair) -> None:
    pair.killed_at(Stage.COMPARING)
    with beside(pair.target) as tx, pytest.raises(CopyFailed, match="nothing to open"):
        reopen(tx, "ann@desk", "by hand")
    before = everything(pair.source)
    pair.copy()
    with beside(pair.source) as tx:
        assert reopen(tx, "ann@desk", "the new one is too slow") is not None
        assert reopen(tx, "ann@desk", "once more") is None
    assert upgrade(pair.source) == NEWEST
    assert everything(pair.source) == before
    with opened(pair.source) as hand:
        hand.ready(hand.new_chat())
    with pytest.raises(ConfigurationError, match="is not empty"):
        pair.copy()
