"""What a chat was sent before: for the silence since, for its buttons, for an opt-out."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, case, select, update

from bot.domain.delivery import PartState
from bot.domain.reply import PartBody
from storage.tables import outbox

_LOOK_BACK = 200
"""How many parts of a chat are looked through for the one that bears a button."""


def bodies(tx: Connection, chat: int, receipt: str) -> Iterator[PartBody]:
    """The parts of a chat: the one with this receipt first, then the newest. Nothing is read
    before the first one is asked for."""
    question = (
        select(outbox.c.text, outbox.c.wire)
        .where(outbox.c.chat == chat)
        .order_by(case((outbox.c.receipt == receipt, 0), else_=1), outbox.c.id.desc())
        .limit(_LOOK_BACK)
    )
    for row in tx.execute(question):
        yield PartBody(row.text, row.wire)


def last_word_at(tx: Connection, chat: int) -> float | None:
    """When something of ours last reached the chat, in epoch seconds; None for never."""
    question = (
        select(outbox.c.sent_at)
        .where(outbox.c.chat == chat, outbox.c.sent_at.is_not(None))
        .order_by(outbox.c.id.desc())
        .limit(10)
    )
    return max(tx.scalars(question).all(), default=None)


def drop_loose(tx: Connection, chat: int) -> int:
    """pending -> dropped, for notices that have not left: the person wants no more of them."""
    move = (
        update(outbox)
        .where(outbox.c.chat == chat, outbox.c.loose, outbox.c.state == PartState.PENDING.value)
        .values(state=PartState.DROPPED.value)
    )
    return tx.execute(move).rowcount
