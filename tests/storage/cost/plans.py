"""Plans of a move: the statements that it runs, and what each of them reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
from sqlalchemy import Dialect

from storage.statements.tx import Tx
from tests.storage.kit import Hand, connected

BIG = frozenset({"runs", "outbox", "inbound", "payloads", "receipts", "chats", "chat_addresses"})
"""Tables that grow."""


@dataclass
class Reading:
    """The reads of a move. `pages` counts 8 KB pages (PostgreSQL only)."""

    indexes: set[str] = field(default_factory=set)
    whole_tables: set[str] = field(default_factory=set)
    pages: int = 0
    sorts: int = 0
    """Of rows that no index has in order (SQLite only)."""
    statements: int = 0


class _Noting(Tx):
    """Notes the statements that it runs, with their values."""

    __slots__ = ("noted",)

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        super().__init__(connection, dialect)
        self.noted: list[tuple[str, Any]] = []

    def _send(self, sql: str, values: Any) -> None:
        self.noted.append((sql, values))
        super()._send(sql, values)

    def send_later(self, sql: str, values: Any = None) -> None:
        """At once: every statement is noted with its own answer."""
        self.run(sql, values or {})


def reading(hand: Hand, move: Callable[..., Any], *args: Any, **kwargs: Any) -> Reading:
    """Run the move, undo it, and ask how its statements were carried out."""
    with connected(hand.url, hand.clock, _Noting) as tx:
        assert isinstance(tx, _Noting)
        tx.run("BEGIN")
        tx.noted.clear()
        move(tx, *args, **kwargs)
        noted = tuple(tx.noted)
        tx.connection.rollback()
        found = Reading(statements=len(noted))
        for statement, values in noted:
            if hand.db.is_sqlite:
                _explain_sqlite(tx, statement, values, found)
            else:
                _explain_postgres(tx, statement, values, found)
    return found


_BIND = re.compile(r"%\((\w+)\)[bst]")
_MODES = ("force_custom_plan", "force_generic_plan")
"""A statement that came a few times is planned once for all values, if that looks no dearer."""


def _explain_postgres(tx: Tx, statement: str, parameters: Any, found: Reading) -> None:
    if statement.startswith("INSERT INTO chat_addresses"):
        return  # The chat that it belongs to was undone with the rest.
    names = list(dict.fromkeys(_BIND.findall(statement)))
    numbered = _BIND.sub(lambda bind: f"${names.index(bind[1]) + 1}", statement)
    given = ", ".join(f"%({name})s" for name in names)
    execute = f"EXECUTE explained({given})" if names else "EXECUTE explained"
    pages = []
    for mode in _MODES:
        with psycopg.ClientCursor(tx.connection) as cursor:
            cursor.execute(f"BEGIN; SET LOCAL plan_cache_mode = {mode}".encode())
            cursor.execute(f"PREPARE explained AS {numbered.replace('%%', '%')}".encode())
            asked = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {execute}"
            [[[explained]]] = cursor.execute(asked.encode(), parameters)
            cursor.execute("ROLLBACK; DEALLOCATE explained")
        root = explained["Plan"]
        pages.append(root["Shared Hit Blocks"] + root["Shared Read Blocks"])
        for node in _nodes(root):
            if node["Node Type"] == "Seq Scan" and node["Actual Loops"] > 0:
                found.whole_tables.add(node["Relation Name"])
            if "Index Name" in node:
                found.indexes.add(node["Index Name"])
    found.pages += max(pages)


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _explain_sqlite(tx: Tx, statement: str, parameters: Any, found: Reading) -> None:
    names = {alias: table for table, alias in re.findall(r"(\w+) AS (\w+)", statement)}
    for row in tx.run(f"EXPLAIN QUERY PLAN {statement}", parameters):
        found.sorts += row[3].startswith("USE TEMP B-TREE FOR ORDER BY")
        used = re.search(r"USING (?:COVERING )?INDEX (\w+)", row[3])
        if used:
            found.indexes.add(used[1])
        elif row[3].startswith("SCAN "):
            scanned = row[3].split()[1]
            found.whole_tables.add(names.get(scanned, scanned))


_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "

_PAST = """
INSERT INTO chats (account, address, kind, created_at) {numbers_3000}
    SELECT {account}, 'past-' || i, 'private', 1 FROM n;
INSERT INTO chat_addresses (account, address, chat)
    SELECT account, address, id FROM chats WHERE address LIKE 'past-%';
INSERT INTO runs (account, chat, state, order_at, idle_since, created_at,
    attempts, replied, ending, ended_at) {numbers_ended}
    SELECT {account}, (SELECT min(id) FROM chats) + i % 150, 'ended', i, i, i, 1, true,
    'answered', i FROM n;
INSERT INTO inbound (account, chat, run, request_id, kind, text, received_at)
    SELECT account, chat, id, 'past-' || id, 'text', 'hello', created_at FROM runs;
INSERT INTO outbox (account, chat, run, kind, part, state, standalone, created_at, text, wire,
    receipt, sent_at) SELECT account, chat, id,
    CASE WHEN id % 50 = 0 THEN 'operator' ELSE 'reply' END, 1,
    CASE WHEN id % 40 = 1 THEN 'uncertain' WHEN id % 40 = 2 THEN 'refused' ELSE 'sent' END,
    id % 80 = 1, created_at, 'hi', '{{}}', 'r' || id, created_at FROM runs;
INSERT INTO runs (account, chat, state, order_at, idle_since, created_at)
    {numbers_waiting} SELECT {account}, (SELECT min(id) FROM chats) + i % 300, 'waiting', i, i,
    i FROM n;
INSERT INTO runs (account, chat, state, order_at, idle_since, created_at,
    attempts, holder, fence) {numbers_300} SELECT {account}, (SELECT min(id) FROM chats) + i - 1,
    'running', i, i, i, 1, {holder}, 1 FROM n;
"""


def fill(hand: Hand, ended: int, waiting: int) -> None:
    """A past of so many ended runs in 150 chats, and a backlog behind 300 running ones."""
    numbers = {
        "numbers_300": _NUMBERS.format(300),
        "numbers_3000": _NUMBERS.format(3_000),
        "numbers_ended": _NUMBERS.format(ended),
        "numbers_waiting": _NUMBERS.format(waiting),
    }
    write(hand, _PAST.format(account=hand.account, holder=hand.holder, **numbers))


def write(hand: Hand, statements: str) -> None:
    """Run statements, however long they take, and let the planner count what they wrote.

    Not as a move: a transaction that takes long is cut off there and made once more, though the
    server may have committed it by then.
    """
    with connected(hand.url, hand.clock) as tx:
        for statement in statements.split(";\n"):
            if statement.strip():
                tx.run(statement.replace("%", "%%") if not hand.db.is_sqlite else statement)
        # PostgreSQL counts by itself in time; on SQLite nobody ever does.
        if not hand.db.is_sqlite:
            tx.run("VACUUM ANALYZE")
