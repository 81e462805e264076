"""Notes of operators on a chat, for each other: apart from everything that is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from storage.schema.tables import notes
from storage.statements.binds import AT_MOST, CHAT_ID
from storage.statements.chat_rows import BlankOld, MoveChat
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.tx import Tx

LONGEST = 4_000
"""Characters of a note."""


@dataclass(frozen=True, slots=True)
class Note:
    """The words of an operator about a chat. `at` in epoch seconds; `text` is empty once the chat's
    words were deleted."""

    id: int
    at: float
    who: str
    text: str


_NOTE = Entity(Note, notes)
_ADD = sa.insert(notes).values(at=now).returning(notes.c.id)
_BY_KEY = sa.select(notes.c.chat, notes.c.text).where(
    notes.c.key == sa.bindparam("its_key", type_=sa.Text)
)
_LISTED = (
    sa.select(*_NOTE.columns)
    .where(notes.c.chat == CHAT_ID)
    .order_by(notes.c.id.desc())
    .limit(AT_MOST)
)


def add(tx: Tx, chat: int, who: str, text: str, key: str = "") -> int:
    """Keep a note; returns its id. `key` may be empty; one that is known is an error. The chat is
    locked."""
    values = {"chat": chat, "who": who, "text": text, "key": key or None}
    return int(tx.scalars(_ADD, values).one())


def under(tx: Tx, key: str) -> tuple[int, str] | None:
    """The chat and the words of the note that was kept by the form of this key."""
    row = tx.execute(_BY_KEY, {"its_key": key}).first()
    return None if row is None else (row.chat, row.text)


def listed(tx: Tx, chat: int, limit: int) -> Sequence[Note]:
    """The newest notes on a chat, oldest of them first."""
    found = _NOTE.all(tx.execute(_LISTED, {"chat_id": chat, "at_most": limit}))
    return found[::-1]


forget_old = BlankOld(notes, notes.c.id, notes.c.at, text=notes.c.text)
merge = MoveChat(notes, notes.c.chat)
