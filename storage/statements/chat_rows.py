"""Moves that the tables of a chat share: rows go to another chat, lose their words, grow old."""

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
"""Rows from which one transaction takes the words."""
_ID = sa.BigInteger()


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


class _Old:
    """Changes a page of rows of more than so many seconds ago, in the order of `at`, which has an
    index. True: there may be more."""

    def __init__(self, change: sa.Delete | sa.Update) -> None:
        self._change = change

    def __call__(self, tx: Tx, older: float) -> bool:
        return tx.execute(self._change, {"seconds": older}).rowcount == AT_ONCE


class DropOld(_Old):
    """Deletes a page of old rows."""

    def __init__(self, table: sa.Table, key: sa.Column[Any], at: sa.Column[Any]) -> None:
        super().__init__(sa.delete(table).where(_are_old(key, at)))


class BlankOld(_Old):
    """Takes the words out of a page of old rows, of those whose column `text` is not empty."""

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
"""The place of a row in its page's order: its key, and its id."""
START: Mark = (0, 0)


class Page:
    """The next rows of a chat behind a mark, with ids up to `until`, in the order of `key`, which
    is that of the index by which the chat's rows are found."""

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
