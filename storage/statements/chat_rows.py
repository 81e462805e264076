"""Moves that several tables share: give rows to another chat, empty texts, delete old rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from storage.schema.tables.words import WORDS
from storage.statements.binds import CHAT_ID, SECONDS
from storage.statements.clock import now
from storage.statements.sets import among, within
from storage.statements.tx import Tx

AT_ONCE = 100
"""Rows that one transaction empties."""
_ID = sa.BigInteger()


class MoveChat:
    """Gives the rows of one chat or run, by their column `owner`, to another chat."""

    def __init__(self, table: sa.Table, owner: sa.Column[Any]) -> None:
        moved = sa.update(table).where(owner == sa.bindparam("owner_id"))
        self._move = moved.values(chat=sa.bindparam("to_chat"))

    def __call__(self, tx: Tx, owner: int, chat: int) -> None:
        tx.execute(self._move, {"owner_id": owner, "to_chat": chat})


class Blank:
    """Empties the texts of the rows whose column `owner` is one of some ids."""

    def __init__(self, table: sa.Table, owner: sa.Column[Any]) -> None:
        self._move = sa.update(table).where(among(owner, "ids")).values(**WORDS[table])

    def __call__(self, tx: Tx, ids: Sequence[int]) -> None:
        tx.execute(self._move, {"ids": list(ids)})


class _Old:
    """Changes a page of rows that are older than so many seconds, in the order of the indexed
    column `at`. Returns True if there may be more."""

    def __init__(self, change: sa.Delete | sa.Update) -> None:
        self._change = change

    def __call__(self, tx: Tx, older: float) -> bool:
        return tx.execute(self._change, {"seconds": older}).rowcount == AT_ONCE


class DropOld(_Old):
    """Deletes a page of old rows."""

    def __init__(self, table: sa.Table, key: sa.Column[Any], at: sa.Column[Any]) -> None:
        super().__init__(sa.delete(table).where(_are_old(key, at)))


class BlankOld(_Old):
    """Empties the texts of a page of old rows, skipping those whose column `text` is empty."""

    def __init__(
        self, table: sa.Table, key: sa.Column[Any], at: sa.Column[Any], *, text: sa.Column[Any]
    ) -> None:
        old = _are_old(key, at, text != sa.literal_column("''"))
        super().__init__(sa.update(table).where(old).values(**WORDS[table]))


def _are_old(
    key: sa.Column[Any], at: sa.Column[Any], *only: sa.ColumnElement[bool]
) -> sa.ColumnElement[bool]:
    page = sa.select(key).where(*only, at < now - SECONDS).order_by(at)
    return within(key, page.limit(sa.literal_column(str(AT_ONCE))))


Mark = tuple[float, int]
"""The position of a row in the order of a page: its key, and its id."""
START: Mark = (0, 0)


class Page:
    """Reads the next rows of a chat after a mark, with ids up to `until`, in the order of `key`,
    which must be the order of the index by which the chat's rows are found."""

    def __init__(
        self, table: sa.Table, *only: sa.ColumnElement[bool], key: sa.Column[Any] | None = None
    ) -> None:
        at = table.c.id if key is None else key
        mark = sa.tuple_(sa.bindparam("mark_at", type_=at.type), sa.bindparam("mark_id", type_=_ID))
        rows = sa.select(at.label("at"), table.c.id.label("id")).where(
            table.c.chat == CHAT_ID,
            sa.tuple_(at, table.c.id) > mark,
            table.c.id <= sa.bindparam("until", type_=_ID),
            *only,
        )
        self._rows = rows.order_by(at, table.c.id).limit(sa.literal_column(str(AT_ONCE)))

    def __call__(self, tx: Tx, chat: int, after: Mark, until: int) -> Sequence[Mark]:
        at, last = after
        asked = {"chat_id": chat, "mark_at": at, "mark_id": last, "until": until}
        return [(row.at, row.id) for row in tx.execute(self._rows, asked)]
