"""The lock on a process's name, with the right to call earlier lives of it dead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
import pytest

from bot.clock import SystemClock
from storage.engine.database import parsed_url
from storage.engine.name_lock import NameLock
from tests.limits import PATIENCE
from tests.storage.kit import connected


@dataclass
class Process:
    """One process: a lock, and the one connection that renews."""

    url: str
    base: str
    lock: NameLock = field(init=False)

    def __post_init__(self) -> None:
        self.lock = NameLock(parsed_url(self.url), self.base)
        self.reconnect()

    def reconnect(self) -> None:
        self._connected = connected(self.url, SystemClock())
        self.tx = self._connected.__enter__()

    def take(self) -> str:
        return self.lock.take(self.tx)

    def keep(self) -> bool:
        return self.lock.keep(self.tx)

    def lose_the_connection(self) -> None:
        """The connection that held the name is gone."""
        self.end()
        self.reconnect()

    def end(self) -> None:
        """End as a process does, and wait until its server has noticed: a while after it."""
        if not self.tx.is_sqlite:
            pid = self.tx.connection.info.backend_pid
            with psycopg.connect(self.url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, %s)", [pid, int(PATIENCE * 1000)])
        self._connected.__exit__(None, None, None)


@contextmanager
def process(url: str, base: str = "host") -> Iterator[Process]:
    """A process, until it ends."""
    life = Process(url, base)
    try:
        yield life
    finally:
        life.lock.release()
        life.end()


def test_two_processes_on_one_host_never_share_a_name(database_url: str) -> None:
    with process(database_url) as one, process(database_url) as two:
        assert [one.take(), two.take()] == ["host/1", "host/2"]
        assert one.keep()
        assert two.keep()
        assert one.take() == "host/1"


def test_a_process_that_starts_again_has_its_name_at_once(database_url: str) -> None:
    with process(database_url) as other:
        with process(database_url) as died:
            assert [died.take(), other.take()] == ["host/1", "host/2"]
        with process(database_url) as again:
            assert again.take() == "host/1"


def test_nothing_is_kept_that_was_never_taken(database_url: str) -> None:
    with process(database_url) as one:
        assert not one.keep()


def test_a_name_is_found_again_on_a_new_connection(postgres_url: str) -> None:
    with process(postgres_url) as one:
        one.take()
        one.lose_the_connection()
        assert one.keep()


def test_a_name_that_another_process_took_meanwhile_is_not_kept(postgres_url: str) -> None:
    with process(postgres_url) as one, process(postgres_url) as two:
        one.take()
        one.lose_the_connection()
        assert two.take() == "host/1"
        assert not one.keep()
        assert one.take() == "host/2"


@pytest.mark.parametrize("base", ["a name with spaces", "pod-7f9c", "Büro"])
def test_any_host_name_makes_a_name(database_url: str, base: str) -> None:
    with process(database_url, base) as one:
        assert one.take() == f"{base}/1"
