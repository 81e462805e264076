"""SQLite's one writer: groups that share a commit, fail apart, and go in their order."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pysqlite3.dbapi2 as sqlite3
import pytest
from sqlalchemy import text

from bot.domain.errors import DatabaseUnavailable
from storage.engine import sqlite
from storage.engine.database import Database, DatabaseSettings
from storage.statements.tx import Tx
from tests.clocks import ShiftedClock
from tests.limits import PATIENCE

NOTE = text("INSERT INTO events (at, who, what) VALUES (1, 'test', :what)")
NOTED = text("SELECT what FROM events ORDER BY id")


class Bench:
    """A database whose writer can be kept busy while jobs pile up behind it."""

    def __init__(self, path: Path) -> None:
        self.clock = ShiftedClock()
        self.clock.stop()  # A group ends when its time is over: not because a machine is slow.
        self.path = path
        self.db = Database(DatabaseSettings(f"sqlite:///{path}"), self.clock)
        self.sql: list[str] = []
        self._begun, self._go = threading.Event(), threading.Event()

    async def busy(self) -> Awaitable[None]:
        """Keep the writer in a job until `free`; returns when it is in there."""
        self._begun.clear()
        self._go.clear()
        task = asyncio.create_task(self.db.write(self._hold))
        await asyncio.to_thread(self._begun.wait, PATIENCE)
        return task

    def free(self) -> None:
        self._go.set()

    def _hold(self, tx: Tx) -> None:
        tx.connection.set_trace_callback(self.sql.append)
        self._begun.set()
        self._go.wait(PATIENCE)

    async def queued(self, *jobs: Callable[[], Awaitable[object]]) -> list[asyncio.Task[object]]:
        """Hand these in, in this order, without waiting for them."""
        tasks: list[asyncio.Task[object]] = []
        for job in jobs:
            tasks.append(asyncio.ensure_future(job()))
            await asyncio.sleep(0)  # noqa: TID251 - lets the task hand its job in
        return tasks

    async def noted(self) -> list[str]:
        return await self.db.read(lambda tx: list(tx.scalars(NOTED)))

    @property
    def commits(self) -> int:
        return self.sql.count("COMMIT")


@pytest.fixture
async def bench(sqlite_url: str, tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path / "answerback.db")
    yield bench
    bench.db.close()


def note(tx: Tx, what: str) -> str:
    tx.execute(NOTE, {"what": what})
    return what


def note_and_break(tx: Tx) -> None:
    note(tx, "half a job")
    raise ValueError("this job breaks")


async def test_jobs_that_wait_share_one_commit(bench: Bench) -> None:
    held = await bench.busy()
    jobs = await bench.queued(*(lambda n=n: bench.db.write(note, f"{n}") for n in range(20)))
    bench.free()
    await held
    assert await asyncio.gather(*jobs) == [f"{n}" for n in range(20)]
    assert bench.commits == 1


async def test_a_job_that_fails_is_undone_and_does_not_hurt_its_neighbours(bench: Bench) -> None:
    held = await bench.busy()
    before, broken, after = await bench.queued(
        lambda: bench.db.write(note, "before"),
        lambda: bench.db.write(note_and_break),
        lambda: bench.db.write(note, "after"),
    )
    bench.free()
    await held
    with pytest.raises(ValueError, match="this job breaks"):
        await broken
    assert [await before, await after] == ["before", "after"]
    assert await bench.noted() == ["before", "after"]
    assert bench.commits == 1


async def test_the_lease_goes_before_all_work_that_waits(bench: Bench) -> None:
    held = await bench.busy()
    jobs = await bench.queued(
        lambda: bench.db.write(note, "first"),
        lambda: bench.db.write(note, "second"),
        lambda: bench.db.renew(note, "the lease"),
    )
    bench.free()
    await asyncio.gather(held, *jobs)
    assert await bench.noted() == ["the lease", "first", "second"]


async def test_a_group_ends_when_its_time_is_over_and_the_lease_is_next(bench: Bench) -> None:
    def slow(tx: Tx, what: str) -> None:
        note(tx, what)
        bench.clock.advance(0.1)

    held = await bench.busy()
    jobs = await bench.queued(
        lambda: bench.db.write(slow, "one"),
        lambda: bench.db.write(slow, "two"),
        lambda: bench.db.write(slow, "three"),
    )
    bench.clock.advance(0.1)
    bench.free()
    await asyncio.gather(held, *jobs)
    assert bench.commits == 4


async def test_a_caller_that_left_takes_its_job_along(bench: Bench) -> None:
    held = await bench.busy()
    kept, left = await bench.queued(
        lambda: bench.db.write(note, "kept"), lambda: bench.db.write(note, "left")
    )
    left.cancel()
    await asyncio.wait([left])
    bench.free()
    await asyncio.gather(held, kept)
    assert left.cancelled()
    assert await bench.noted() == ["kept"]


async def test_closing_finishes_what_is_queued_and_takes_nothing_more(bench: Bench) -> None:
    held = await bench.busy()
    [job] = await bench.queued(lambda: bench.db.write(note, "queued"))
    closing = asyncio.create_task(asyncio.to_thread(bench.db.close))
    bench.free()
    await asyncio.gather(held, closing)
    assert await job == "queued"
    with pytest.raises(DatabaseUnavailable):
        await bench.db.write(note, "too late")


async def test_a_writer_elsewhere_makes_it_unavailable_and_nothing_is_half_written(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PATIENCE", 0.05)
    bench = Bench(tmp_path / "answerback.db")
    elsewhere = sqlite3.connect(bench.path, isolation_level=None)
    try:
        elsewhere.execute("BEGIN IMMEDIATE")
        refused = await asyncio.gather(
            *(bench.db.write(note, f"{n}") for n in range(3)), return_exceptions=True
        )
        assert [type(error) for error in refused] == [DatabaseUnavailable] * 3
        elsewhere.execute("ROLLBACK")
        assert await bench.db.write(note, "later") == "later"
        assert await bench.noted() == ["later"]
    finally:
        elsewhere.close()
        bench.db.close()


async def test_a_commit_that_fails_fails_the_whole_group(bench: Bench) -> None:
    def owes(tx: Tx) -> None:
        tx.run("PRAGMA defer_foreign_keys = ON")
        tx.execute(text("INSERT INTO chat_addresses (account, address, chat) VALUES (99, 'x', 99)"))

    held = await bench.busy()
    jobs = await bench.queued(
        lambda: bench.db.write(note, "beside it"), lambda: bench.db.write(owes)
    )
    bench.free()
    for outcome in await asyncio.gather(held, *jobs, return_exceptions=True):
        assert isinstance(outcome, DatabaseUnavailable)
    assert await bench.noted() == []
    assert await bench.db.write(note, "later") == "later"


async def test_a_writer_that_is_ended_fails_all_who_wait_and_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda found: reported.append(found.exc_type))
    told = threading.Event()
    bench.db.on_broken = told.set

    def leave(_tx: Tx) -> None:
        raise SystemExit

    held = await bench.busy()
    jobs = await bench.queued(
        lambda: bench.db.write(note, "beside it"),
        lambda: bench.db.write(leave),
        lambda: bench.db.write(note, "behind it"),
    )
    bench.free()
    for outcome in await asyncio.gather(held, *jobs, return_exceptions=True):
        assert isinstance(outcome, DatabaseUnavailable)
    assert await asyncio.to_thread(told.wait, PATIENCE)
    with pytest.raises(DatabaseUnavailable):
        await bench.db.renew(note, "too late")
    assert await bench.noted() == []
    bench.db.close()
    assert reported == [SystemExit]


async def test_another_file_in_its_place_ends_the_writer_and_nothing_goes_to_the_lost_one(
    tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _found: None)
    path, aside = tmp_path / "answerback.db", tmp_path / "aside.db"
    shutil.copyfile(sqlite_template, path)
    told = threading.Event()
    db = Database(DatabaseSettings(f"sqlite:///{path}"), ShiftedClock())
    db.on_broken = told.set
    await db.write(note, "before")
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").rename(f"{aside}{end}")
    shutil.copyfile(sqlite_template, path)
    for call in (db.write(note, "work"), db.renew(note, "lease")):
        with pytest.raises(DatabaseUnavailable):
            await call
    assert await asyncio.to_thread(told.wait, PATIENCE)
    db.close()
    for place, words in ((path, []), (aside, ["before"])):
        found = Database(DatabaseSettings(f"sqlite:///{place}"), ShiftedClock())
        assert await found.read(lambda tx: list(tx.scalars(NOTED))) == words
        found.close()


async def test_a_file_that_can_not_be_opened_is_unavailable_and_used_when_it_can(
    tmp_path: Path, sqlite_template: Path
) -> None:
    path = tmp_path / "later" / "answerback.db"
    db = Database(DatabaseSettings(f"sqlite:///{path}"), ShiftedClock())
    try:
        for call in (db.write(note, "x"), db.renew(note, "x"), db.read(note, "x")):
            with pytest.raises(DatabaseUnavailable, match="unable to open"):
                await call
        path.parent.mkdir()
        shutil.copyfile(sqlite_template, path)
        assert await db.write(note, "now") == "now"
    finally:
        db.close()


async def test_a_reader_sees_one_snapshot(bench: Bench) -> None:
    loop = asyncio.get_running_loop()

    def count_twice(tx: Tx) -> tuple[int, int]:
        first = len(tx.scalars(NOTED).all())
        asyncio.run_coroutine_threadsafe(bench.db.write(note, "between"), loop).result(5)
        return first, len(tx.scalars(NOTED).all())

    assert await bench.db.read(count_twice) == (0, 0)
    assert await bench.noted() == ["between"]
