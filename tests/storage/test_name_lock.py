"""The lock on a process's name: who has it may call earlier lives of it dead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from sqlalchemy import Engine, text

from bot.clock import SystemClock
from storage.engine import postgres, sqlite
from storage.engine.database import parsed_url
from storage.engine.name_lock import NameLock


@contextmanager
def process(url: str) -> Iterator[tuple[NameLock, Engine]]:
    """One process: a lock, and the one connection that renews."""
    parsed = parsed_url(url)
    engine: Engine
    if parsed.get_backend_name() == "sqlite":
        engine = sqlite.open_engine(parsed, SystemClock())
    else:
        engine = postgres.open_engine(parsed, 1, 2.0)
    lock = NameLock(parsed, "host")
    try:
        yield lock, engine
    finally:
        lock.release()
        engine.dispose()


def take(life: tuple[NameLock, Engine]) -> str:
    lock, engine = life
    with engine.begin() as tx:
        return lock.take(tx)


def keep(life: tuple[NameLock, Engine]) -> bool:
    lock, engine = life
    with engine.begin() as tx:
        return lock.keep(tx)


def test_two_processes_on_one_host_never_share_a_name(database_url: str) -> None:
    with process(database_url) as one, process(database_url) as two:
        assert [take(one), take(two)] == ["host/1", "host/2"]
        assert keep(one)
        assert keep(two)
        assert take(one) == "host/1"


def test_a_process_that_starts_again_has_its_name_at_once(database_url: str) -> None:
    with process(database_url) as other:
        with process(database_url) as died:
            assert [take(died), take(other)] == ["host/1", "host/2"]
        with process(database_url) as again:
            assert take(again) == "host/1"


def test_nothing_is_kept_that_was_never_taken(database_url: str) -> None:
    with process(database_url) as one:
        assert not keep(one)


def broken(url: str, life: tuple[NameLock, Engine]) -> None:
    """The connection that held the name is gone."""
    with life[1].begin() as tx:
        pid = tx.scalar(text("SELECT pg_backend_pid()"))
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    life[1].dispose()


def test_a_name_is_found_again_on_a_new_connection(postgres_url: str) -> None:
    with process(postgres_url) as one:
        take(one)
        broken(postgres_url, one)
        assert keep(one)


def test_a_name_that_another_process_took_meanwhile_is_not_kept(postgres_url: str) -> None:
    with process(postgres_url) as one, process(postgres_url) as two:
        take(one)
        broken(postgres_url, one)
        assert take(two) == "host/1"
        assert not keep(one)
        assert take(one) == "host/2"


@pytest.mark.parametrize("base", ["a name with spaces", "pod-7f9c", "Büro"])
def test_any_host_name_makes_a_name(database_url: str, base: str) -> None:
    with process(database_url) as (_, engine), engine.begin() as tx:
        lock = NameLock(parsed_url(database_url), base)
        assert lock.take(tx) == f"{base}/1"
        lock.release()
