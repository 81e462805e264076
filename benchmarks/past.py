"""A long past, a long backlog and many people, inserted as sets on both kinds of database."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg
import pysqlite3.dbapi2 as sqlite3

BUSY_CHATS = 10
"""The people who have said all of it; the benchmark's messages come from them."""
_HEADS = 300
_FAR = 1e7
_ENDED_APART = 0.1
"""Seconds between two endings: recent enough to be kept, and none within the last hour."""


@dataclass(frozen=True, slots=True)
class Size:
    """The content of the database: chats, runs that wait behind a head that is not due, ended
    runs."""

    chats: int = 100
    waiting: int = 0
    ended: int = 0

    def __str__(self) -> str:
        return f"{self.chats:,} chats, {self.waiting:,} waiting, {self.ended:,} ended"


_CHATS = """
INSERT INTO chats (account, address, kind, created_at) {numbers}
    SELECT {account}, 'person-' || i, 'private', {now} FROM n;
INSERT INTO chat_addresses (account, address, chat)
    SELECT account, address, id FROM chats
    WHERE id NOT IN (SELECT chat FROM chat_addresses)"""
_HEAD_RUNS = """
INSERT INTO runs (account, chat, state, order_at, idle_since, created_at, not_before) {numbers}
    SELECT {account}, {chat} + {busy} + i, 'ready', {now}, {now}, {now}, {now} + {far} FROM n"""
_WAITING = """
INSERT INTO runs (account, chat, state, order_at, idle_since, created_at) {numbers}
    SELECT {account}, {chat} + {busy} + i % {heads}, 'waiting', {now} + i, {now}, {now} FROM n"""
_ENDED = """
INSERT INTO runs (account, chat, state, order_at, idle_since, created_at, claimed_at, attempts,
    fence, messages, replied, ending, ended_at, deadline_at, request_id) {numbers}
    SELECT {account}, {chat} + i % {busy}, 'ended', {at}, {at}, {at}, {at}, 1, 2, 1, true,
    'answered', {at}, {at} + 900, 'past-' || i FROM n"""
_SAID = """
INSERT INTO inbound (account, chat, run, request_id, provider_id, kind, text, sender_id,
    payload, received_at) SELECT account, chat, id, request_id, id, 'text', 'hello, what is it?',
    'person', '{{"text": "hello, what is it?"}}', created_at FROM runs WHERE {fresh};
INSERT INTO outbox (account, chat, run, kind, part, state, standalone, fence, attempts,
    created_at, text, wire, receipt, sent_at) SELECT account, chat, id, 'reply', 1, 'sent', false,
    1, 1, ended_at, 'it is as it was', '{{}}', 'r' || id, ended_at FROM runs WHERE {fresh}"""


def grow(url: str, before: Size, after: Size) -> None:
    """Insert what `after` has and `before` has not."""
    now = time.time()
    words: dict[str, object] = {
        "account": 1,
        "now": now,
        "far": _FAR,
        "busy": BUSY_CHATS,
        "heads": _HEADS,
    }
    with closing(_Connection(url)) as connection:
        if not before.chats:
            connection.run("INSERT INTO accounts (channel, account) VALUES ('console', 'local')")
        if after.chats > before.chats:
            connection.run(_CHATS, numbers=_numbers(before.chats, after.chats), **words)
        words["chat"] = connection.value("SELECT min(id) FROM chats")
        if after.waiting and not before.waiting:
            connection.run(_HEAD_RUNS, numbers=_numbers(0, _HEADS), **words)
        if after.waiting > before.waiting:
            connection.run(_WAITING, numbers=_numbers(before.waiting, after.waiting), **words)
        if after.ended > before.ended:
            last = connection.value("SELECT coalesce(max(id), 0) FROM runs")
            words["at"] = f"({now - 3600} - ({after.ended} - i) * {_ENDED_APART})"
            connection.run(_ENDED, numbers=_numbers(before.ended, after.ended), **words)
            connection.run(_SAID, fresh=f"id > {last} AND state = 'ended'")


class _Connection:
    """A connection of its own that inserts quickly: nothing else uses the database meanwhile."""

    def __init__(self, url: str) -> None:
        self._is_sqlite = url.startswith("sqlite")
        self._db: Any
        if self._is_sqlite:
            self._db = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
            self._db.executescript("PRAGMA synchronous = OFF; PRAGMA cache_size = -500000")
        else:
            self._db = psycopg.connect(url, autocommit=True)
            self._db.execute("SET session_replication_role = replica; SET synchronous_commit = off")

    def run(self, sql: str, **words: object) -> None:
        """Run these statements, spelled with these words."""
        for statement in sql.format(**words).split(";"):
            self._db.execute(statement)

    def value(self, sql: str) -> int:
        """The one number that a query answers."""
        (found,) = self._db.execute(sql).fetchone()
        return int(found)

    def close(self) -> None:
        """Write everything out, so that nothing of this is left to be done later."""
        if self._is_sqlite:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            self._db.execute("VACUUM ANALYZE")
            self._db.execute("CHECKPOINT")
        self._db.close()


def _numbers(first: int, beyond: int) -> str:
    """`n(i)`: the numbers from `first` up to, and without, `beyond`."""
    return (
        f"WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n "
        f"WHERE i + 1 < {beyond}) "
    )
