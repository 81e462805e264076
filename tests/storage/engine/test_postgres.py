"""PostgreSQL that breaks, hangs, stops and comes back: work goes on without a new process."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url, text

from bot.clock import SystemClock
from bot.domain.errors import DatabaseUnavailable
from storage.engine.database import Database, DatabaseSettings
from storage.statements.tx import StatementFailed, Tx
from tests.limits import PATIENCE
from tests.servers import Postgres

NOTE = text("INSERT INTO events (at, who, what) VALUES (1, 'test', :what)")
COUNT = text("SELECT count(*) FROM events")
RENAME = text("UPDATE accounts SET name = 'x' WHERE id = :id")
PID = text("SELECT pg_backend_pid()")


@pytest.fixture
async def db(postgres_url: str) -> AsyncIterator[Database]:
    db = Database(DatabaseSettings(postgres_url, pool=2, patience=int(PATIENCE)), SystemClock())
    yield db
    db.close()


@pytest.fixture
async def impatient(postgres_url: str) -> AsyncIterator[Database]:
    """One that gives up soon what takes long: a connection as soon as the product does."""
    url = str(make_url(postgres_url).difference_update_query(["connect_timeout"]))
    db = Database(DatabaseSettings(url, pool=2, patience=2), SystemClock())
    yield db
    db.close()


def note(tx: Tx, what: str) -> str:
    tx.execute(NOTE, {"what": what})
    return what


def count(tx: Tx) -> int:
    return int(tx.scalars(COUNT).one())


async def test_no_statement_is_compiled(db: Database) -> None:
    assert await db.read(lambda tx: tx.run("SHOW jit")) == [("off",)]


async def test_a_transaction_whose_session_is_killed_is_done_once_more(
    db: Database, postgres_url: str
) -> None:
    victims: list[int] = []

    def dies_once(tx: Tx) -> str:
        note(tx, "half a transaction")
        if not victims:
            victims.append(tx.scalars(PID).one())
            with psycopg.connect(postgres_url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", victims)
        return note(tx, "the other half")

    assert await db.write(dies_once) == "the other half"
    assert await db.read(count) == 2


@pytest.mark.parametrize("commits", [True, False], ids=["committed", "undone"])
async def test_what_has_no_key_is_made_once_although_the_answer_to_its_commit_is_lost(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, commits: bool
) -> None:
    commit, lost = Tx.commit, list[str]()

    def loses_its_answer(tx: Tx) -> None:
        if commits or lost:
            commit(tx)
        if not lost:
            lost.append("an answer")
            tx.connection.close()
            raise psycopg.OperationalError("the server closed the connection")

    monkeypatch.setattr(Tx, "commit", loses_its_answer)
    assert await db.write_once(note, "words") == "words"
    assert lost
    assert await db.read(count) == 1


async def test_the_victim_of_a_deadlock_is_done_once_more(db: Database) -> None:
    first, second = await db.write(_two_accounts)
    both_hold_one = threading.Barrier(2)
    tried: list[int] = []

    def cross(tx: Tx, one: int, other: int) -> str:
        tx.execute(RENAME, {"id": one})
        if one not in tried:
            tried.append(one)
            both_hold_one.wait(PATIENCE)
        tx.execute(RENAME, {"id": other})
        return "done"

    done = await asyncio.gather(db.write(cross, first, second), db.write(cross, second, first))
    assert list(done) == ["done", "done"]


def _two_accounts(tx: Tx) -> tuple[int, int]:
    made = text("INSERT INTO accounts (channel, account) VALUES ('console', :n) RETURNING id")
    return tx.scalars(made, {"n": "a"}).one(), tx.scalars(made, {"n": "b"}).one()


async def test_a_server_that_is_down_is_unavailable_at_once_and_used_again_when_it_is_up(
    db: Database, postgres: Postgres
) -> None:
    assert await db.write(note, "before") == "before"
    postgres.stop()
    async with asyncio.timeout(PATIENCE):
        for call in (db.write(note, "x"), db.read(count), db.renew(note, "x")):
            with pytest.raises(DatabaseUnavailable):
                await call
    postgres.start()
    assert await db.write(note, "after") == "after"
    assert await db.renew(note, "the lease") == "the lease"
    assert await db.read(count) == 3


async def test_b85_more_work_than_connections_waits_and_the_lease_does_not(
    db: Database, postgres_url: str
) -> None:
    def wait_and_note(tx: Tx, what: str) -> str:
        tx.execute(text("SELECT pg_advisory_xact_lock_shared(1)"))
        return note(tx, what)

    with psycopg.connect(postgres_url, autocommit=True) as gate:
        gate.execute("SELECT pg_advisory_lock(1)")
        work = [asyncio.create_task(db.write(wait_and_note, f"{n}")) for n in range(40)]
        for _ in range(3):
            assert await db.renew(note, "the lease") == "the lease"
        assert not any(task.done() for task in work)
        gate.execute("SELECT pg_advisory_unlock(1)")
        assert await asyncio.gather(*work) == [f"{n}" for n in range(40)]


async def test_a_session_that_hangs_is_left_and_its_work_done_in_another(
    impatient: Database,
) -> None:
    hung: list[int] = []

    def hangs_once(tx: Tx) -> str:
        note(tx, "half a transaction")
        if not hung:
            hung.append(tx.scalars(PID).one())
            os.kill(hung[0], signal.SIGSTOP)
        return note(tx, "the other half")

    try:
        async with asyncio.timeout(PATIENCE):
            assert await impatient.write(hangs_once) == "the other half"
    finally:
        os.kill(hung[0], signal.SIGCONT)
    assert await impatient.read(count) == 2


@contextmanager
def hanging(server: Postgres) -> Iterator[None]:
    """Every process of the server stands still."""
    family = [server.pid, *_children(server.pid)]
    for pid in family:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in family:
            os.kill(pid, signal.SIGCONT)


def _children(pid: int) -> list[int]:
    return [int(name) for name in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_a_server_that_hangs_frees_its_threads_and_is_used_again_afterwards(
    impatient: Database, postgres: Postgres
) -> None:
    for _ in range(3):
        await asyncio.gather(
            *(impatient.write(note, "before") for _ in range(2)), impatient.renew(note, "x")
        )
    with hanging(postgres):
        async with asyncio.timeout(PATIENCE):
            calls = [
                impatient.write(note, "x"),
                impatient.write(note, "x"),
                impatient.read(count),
                impatient.renew(note, "x"),
            ]
            for outcome in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(outcome, DatabaseUnavailable)
    assert await impatient.write(note, "after") == "after"
    assert await impatient.renew(note, "the lease") == "the lease"


async def test_a_reader_sees_one_snapshot_and_writes_nothing(db: Database) -> None:
    loop = asyncio.get_running_loop()

    def count_twice(tx: Tx) -> tuple[int, int]:
        first = count(tx)
        asyncio.run_coroutine_threadsafe(db.write(note, "between"), loop).result(PATIENCE)
        return first, count(tx)

    assert await db.read(count_twice) == (0, 0)
    assert await db.read(count) == 1
    with pytest.raises(StatementFailed, match="ReadOnlySqlTransaction"):
        await db.read(note, "written by a reader")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("XX000", DatabaseUnavailable),  # A quota.
        ("42501", DatabaseUnavailable),  # A mount that is read only.
        ("53100", DatabaseUnavailable),  # A full disk.
        ("58030", DatabaseUnavailable),  # A disk that breaks.
        ("25006", DatabaseUnavailable),
        ("22021", StatementFailed),
        ("23514", StatementFailed),
    ],
)
async def test_a_file_that_cannot_be_written_is_no_fault_of_what_is_written(
    db: Database, postgres_url: str, code: str, told: type[Exception]
) -> None:
    raises = f"RAISE EXCEPTION 'could not extend file' USING ERRCODE = '{code}'"
    function = f"CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {raises}; END$$"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(function.encode())
        connection.execute("CREATE TRIGGER no BEFORE INSERT ON events EXECUTE FUNCTION no()")
    with pytest.raises(told):
        await db.write(note, "x")


async def test_nobody_holds_rows_locked_for_long(db: Database) -> None:
    def bounds(tx: Tx) -> tuple[str, ...]:
        names = ("lock_timeout", "idle_in_transaction_session_timeout")
        return tuple(str(tx.scalar(text(f"SHOW {name}"))) for name in names)

    assert await db.write(bounds) == ("5s", "5s")
