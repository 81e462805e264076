"""Moves that the tables of a chat share: rows go to another chat, or lose their words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from storage.engine.binds import CHAT_ID
from storage.engine.tx import Tx

_AT_ONCE = 200
"""Rows from which one transaction takes the words."""


class MoveChat:
    """Moves the rows that `owner`, a column of theirs, counts to one chat or run."""

    def __init__(self, table: sa.Table, owner: sa.Column[Any]) -> None:
        moved = sa.update(table).where(owner == sa.bindparam("owner_id"))
        self._move = moved.values(chat=sa.bindparam("to_chat"))

    def __call__(self, tx: Tx, owner: int, chat: int) -> None:
        tx.execute(self._move, {"owner_id": owner, "to_chat": chat})


class Erasure:
    """Takes the words out of a chat's rows, a page in a transaction.

    `counted` has the rows by which it goes (messages, parts, runs); `blank` makes the updates
    for a page of their ids.
    """

    def __init__(
        self, counted: sa.Table, blank: Callable[[sa.Select[int]], Sequence[sa.Update]]
    ) -> None:
        ids = sa.select(counted.c.id).where(
            counted.c.chat == CHAT_ID, counted.c.id > sa.bindparam("after", type_=sa.BigInteger)
        )
        found = ids.where(counted.c.id <= sa.bindparam("until")).order_by(counted.c.id)
        self._last = sa.select(sa.func.max(found.limit(_AT_ONCE).subquery().c.id))
        self._blank = blank(ids.where(counted.c.id <= sa.bindparam("last")))

    def __call__(self, tx: Tx, chat: int, after: int, until: int) -> int | None:
        """Erase one page of the rows from id `after` to `until`; returns its last id, or None
        when there were no more."""
        page = {"chat_id": chat, "after": after}
        last: int | None = tx.scalar(self._last, page | {"until": until})
        for blank in self._blank if last is not None else ():
            tx.execute(blank, page | {"last": last})
        return last
