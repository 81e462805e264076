"""Moves that the tables of a chat share: rows go to another chat, or lose their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from storage.engine.binds import CHAT_ID
from storage.engine.sets import among
from storage.engine.tx import Tx
from storage.schema.tables.words import WORDS

AT_ONCE = 200
"""Rows from which one transaction takes the words."""
_AFTER = sa.bindparam("after", type_=sa.BigInteger)


class MoveChat:
    """Moves the rows that `owner`, a column of theirs, counts to one chat or run."""

    def __init__(self, table: sa.Table, owner: sa.Column[Any]) -> None:
        moved = sa.update(table).where(owner == sa.bindparam("owner_id"))
        self._move = moved.values(chat=sa.bindparam("to_chat"))

    def __call__(self, tx: Tx, owner: int, chat: int) -> None:
        tx.execute(self._move, {"owner_id": owner, "to_chat": chat})


class Blank:
    """Takes the words out of the rows that `owner`, a column of theirs, counts to some ids."""

    def __init__(self, table: sa.Table, owner: sa.Column[Any]) -> None:
        self._move = sa.update(table).where(among(owner, "ids")).values(**WORDS[table])

    def __call__(self, tx: Tx, ids: Sequence[int]) -> None:
        tx.execute(self._move, {"ids": list(ids)})


class Page:
    """The next ids of a chat's rows behind `after`, up to `until`."""

    def __init__(self, table: sa.Table, *only: sa.ColumnElement[bool]) -> None:
        ids = sa.select(table.c.id).where(table.c.chat == CHAT_ID, table.c.id > _AFTER, *only)
        found = ids.where(table.c.id <= sa.bindparam("until", type_=sa.BigInteger))
        self._ids = found.order_by(table.c.id).limit(sa.literal_column(str(AT_ONCE)))

    def __call__(self, tx: Tx, chat: int, after: int, until: int) -> Sequence[int]:
        return tx.scalars(self._ids, {"chat_id": chat, "after": after, "until": until}).all()
