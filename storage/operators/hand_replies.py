"""Replies by hand: their authors, and the form by which each was sent, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from storage.outbox.rows import ANSWERS, OPERATOR
from storage.schema.tables import hand_replies, outbox
from storage.statements.binds import CHAT_ID
from storage.statements.chat_rows import BlankOld, MoveChat
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class HandReply:
    """The first part of a reply that somebody wrote by hand, and a hash of its words."""

    part: int
    chat: int
    who: str
    digest: str


_REPLY = Entity(HandReply, hand_replies)
_RECORD = sa.insert(hand_replies).values(at=now)
_BY_KEY = sa.select(*_REPLY.columns).where(
    hand_replies.c.key == sa.bindparam("its_key", type_=sa.Text)
)


def record(tx: Tx, chat: int, parts: Sequence[int], who: str, digest: str, key: str) -> None:
    """Write down who wrote these parts. `key` may be empty; one that is known is an error. The chat
    is locked."""
    for place, part in enumerate(parts):
        first = key or None if place == 0 else None
        values = {"part": part, "chat": chat, "who": who, "key": first, "digest": digest}
        tx.execute(_RECORD, values)


def under(tx: Tx, key: str) -> HandReply | None:
    """The reply that was sent by the form of this key."""
    return _REPLY.first(tx.execute(_BY_KEY, {"its_key": key}))


_LAST_SAID = (
    sa.select(outbox.c.id, hand_replies.c.who)
    .outerjoin(hand_replies, hand_replies.c.part == outbox.c.id)
    .where(outbox.c.chat == CHAT_ID, sa.or_(OPERATOR, ANSWERS))
    .order_by(outbox.c.id.desc())
    .limit(sa.literal_column("1"))
)


@dataclass(frozen=True, slots=True)
class LastSaid:
    """The newest of our words in a chat that no notice of ours is: 0 where there are none. `who`
    wrote it by hand, if somebody did."""

    part: int = 0
    who: str = ""


def last_said(tx: Tx, chat: int) -> LastSaid:
    """The words that whoever writes to the chat should have seen."""
    row = tx.execute(_LAST_SAID, {"chat_id": chat}).first()
    return LastSaid() if row is None else LastSaid(row.id, row.who or "")


forget_old = BlankOld(
    hand_replies, hand_replies.c.part, hand_replies.c.at, text=hand_replies.c.digest
)
merge = MoveChat(hand_replies, hand_replies.c.chat)
