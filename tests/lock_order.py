"""The order in which transactions lock rows on PostgreSQL, held in every test that has one.

Two transactions that lock the same rows in one order never wait for each other in a circle:
holders, then chats by their ids, then runs and parts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Dialect, Executable

from storage.statements.tx import Result, Row, Tx

violations: list[str] = []
"""The locks taken out of order since the last test."""

_UPDATES = re.compile(r"UPDATE (\w+)")
_ASKS = re.compile(r"EXISTS \([^()]*\)")
"""The part of a statement that asks another table beside the rows that it locks."""
_LOCKS = re.compile(r"FROM (\w+).* FOR NO KEY UPDATE(?: OF (\w+))?( SKIP LOCKED)?", re.DOTALL)


class WatchedTx(Tx):
    """A transaction that notes what it locked."""

    __slots__ = ("chats", "further")

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        super().__init__(connection, dialect)
        self.chats: list[int] = []
        self.further = ""

    def execute(
        self, statement: Executable, values: Mapping[str, object] | None = None
    ) -> Result[Row]:
        given = values or {}
        rows = super().execute(statement, given)
        named = rows.all() if rows.all() and "id" in rows.all()[0]._fields else []
        self._note(self.statement, given, [row.id for row in named])
        return rows

    def later(self, statement: Executable, values: Mapping[str, object] | None = None) -> None:
        given = values or {}
        super().later(statement, given)
        named = [given["chat_id"]] if "chat_id" in given else []
        self._note(self._unsent[-1][0], given, named)

    def _note(self, sql: str, given: Mapping[str, object], ids: list[Any]) -> None:
        updated, locked = _UPDATES.match(sql), _LOCKS.search(_ASKS.sub("", sql))
        if updated is not None:
            self._touch(updated[1], [given[k] for k in ("chat_id", "kept", "gone") if k in given])
        elif locked is not None:
            self._touch(locked[2] or locked[1], ids, waits=locked[3] is None)

    def _touch(self, table: str, ids: list[Any], *, waits: bool = True) -> None:
        if table == "holders" and self.chats:
            self._broken("a holder after a chat")
        if table in ("runs", "outbox"):
            self.further = table
        if table != "chats":
            return
        for chat in ids:
            if chat in self.chats:
                continue
            if waits and self.further:
                self._broken(f"chat {chat} after a row of {self.further}")
            if waits and self.chats and chat < self.chats[-1]:
                self._broken(f"chat {chat} after chat {self.chats[-1]}")
            self.chats.append(chat)

    def _broken(self, what: str) -> None:
        violations.append(f"{what}: {' '.join(self.statement.split())[:200]}")
