"""A file of SQLite is read by users who may not write it, and told as what it is to them."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pysqlite3.dbapi2 as sqlite3
import pytest
from sqlalchemy import text

from bot.domain.errors import DatabaseUnavailable
from bot.operations.reports.stuck import database_troubles
from bot.operations.session import database_exists, schema_problem
from storage.engine import read_only
from storage.engine.database import Database, DatabaseSettings
from storage.engine.demands import facts_of
from storage.statements.tx import Tx
from tests.clocks import ShiftedClock

NOBODY = 65_534
NOTE = text("INSERT INTO events (at, who, what) VALUES (1, 'test', 'noted')")
COUNT = text("SELECT count(*) FROM events WHERE what = 'noted'")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")


@contextmanager
def as_nobody() -> Iterator[None]:
    """Another user than the file's owner, for the body alone."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def file(sqlite_template: Path) -> Iterator[Path]:
    """A migrated file of this user in a folder of his, which others may look into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        file = Path(folder) / "answerback.db"
        shutil.copyfile(sqlite_template, file)
        file.chmod(0o644)
        yield file


@contextmanager
def written(file: Path) -> Iterator[None]:
    """A process at work on the file: what it wrote last stands in the `-wal` alone."""
    with closing(sqlite3.connect(file, isolation_level=None)) as raw:
        raw.execute("PRAGMA journal_mode = WAL")
        raw.execute("PRAGMA wal_autocheckpoint = 0")
        raw.execute(NOTE.text)
        yield


def noted(file: Path) -> int:
    """The notes in the file, as a command reads them."""
    db = Database(DatabaseSettings(f"sqlite:///{file}"), ShiftedClock())
    try:
        return asyncio.run(db.read(lambda tx: int(tx.scalar(COUNT))))
    finally:
        db.close()


def beside(file: Path) -> set[str]:
    return {found.name for found in file.parent.iterdir()}


def test_a_user_who_may_only_read_reads_beside_the_service_and_after_it(file: Path) -> None:
    with written(file):
        was = beside(file)
        with as_nobody():
            assert noted(file) == 1
        assert beside(file) == was
    assert beside(file) == {file.name}, "a service that ends well leaves nothing beside it"
    with as_nobody():
        assert (noted(file), schema_problem(f"sqlite:///{file}")) == (1, "")
    assert beside(file) == {file.name}


def test_what_a_killed_service_left_is_read(file: Path) -> None:
    killed = file.with_name("killed.db")
    with written(file):
        for end in ("", "-wal", "-shm"):
            shutil.copyfile(f"{file}{end}", f"{killed}{end}")
    with as_nobody():
        assert noted(killed) == 1

    Path(f"{killed}-shm").unlink()
    with as_nobody(), pytest.raises(DatabaseUnavailable, match=r"nobody can't read .*-wal.*root"):
        noted(killed)


def test_a_service_that_begins_while_a_file_is_read_does_not_spoil_the_answer(file: Path) -> None:
    began: list[str] = []

    def question(raw: object) -> int:
        [(found,)] = raw.execute(COUNT.text)  # type: ignore[attr-defined]
        if not began:
            began.append("once")
            with written(file):
                pass
        return int(found)

    assert read_only.read(file, question, 1.0) == 1, "the second look, at the file as it is now"


def test_what_this_user_may_not_do_is_said_with_whose_the_file_is(file: Path) -> None:
    url = f"sqlite:///{file}"

    async def act() -> None:
        db = Database(DatabaseSettings(url), ShiftedClock())
        try:
            await db.write(note)
        finally:
            await asyncio.to_thread(db.close)

    def note(tx: Tx) -> None:
        tx.execute(NOTE)

    with as_nobody(), pytest.raises(DatabaseUnavailable, match=r"nobody may not write .*as root"):
        asyncio.run(act())
    file.chmod(0o600)
    with as_nobody(), pytest.raises(DatabaseUnavailable, match=r"nobody may not read .*as root"):
        noted(file)
    file.parent.chmod(0o700)
    with as_nobody():
        assert database_exists(url), "it can't be said that there is none"
        with pytest.raises(DatabaseUnavailable, match="nobody may not read"):
            schema_problem(url)


def test_the_rights_of_who_looks_are_no_trouble_of_the_service(file: Path) -> None:
    url = f"sqlite:///{file}"
    with as_nobody():
        assert "may not write" in facts_of(url, ShiftedClock()).refusal
        assert database_troubles(url, ShiftedClock()) == []


def test_a_trouble_of_the_service_is_told_to_whoever_may_write_the_file_of_another(
    file: Path,
) -> None:
    """As root does, who looks after what another user serves."""
    os.chown(file, NOBODY, NOBODY)
    with closing(sqlite3.connect(file, isolation_level=None)) as held:
        held.execute("BEGIN EXCLUSIVE")
        [trouble] = database_troubles(f"sqlite:///{file}", ShiftedClock())
    assert "locked" in trouble.why


def test_a_file_that_its_owner_may_not_write_is_named(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access: Callable[..., bool] = os.access

    def mounted_read_only(path: Path, mode: int, **options: bool) -> bool:
        return mode != os.W_OK and access(path, mode, **options)

    monkeypatch.setattr(os, "access", mounted_read_only)
    [trouble] = database_troubles(f"sqlite:///{file}", ShiftedClock())
    assert "see their modes, and how the disk is mounted" in trouble.why
    assert noted(file) == 0
