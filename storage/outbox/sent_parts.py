"""What a chat was sent: for buttons and silence since, for look-ups, for answers by a human."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import bindparam, case, exists, literal_column, select, update

from bot.domain.delivery import ARRIVED, PartState
from bot.domain.reply import PartBody, PartKind
from storage.engine.literals import is_in
from storage.engine.tx import Tx
from storage.outbox.moves import COLUMNS, Part, part_of
from storage.schema.tables import outbox, receipts

_LOOK_BACK = 200
"""How many parts of a chat are looked through for the one that bears a button."""


def bodies(tx: Tx, chat: int, receipt: str) -> Iterator[PartBody]:
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


def last_word_at(tx: Tx, chat: int) -> float | None:
    """When something of ours last reached the chat, in epoch seconds; None for never."""
    question = (
        select(outbox.c.sent_at)
        .where(outbox.c.chat == chat, outbox.c.sent_at.is_not(None))
        .order_by(outbox.c.id.desc())
        .limit(10)
    )
    return max(tx.scalars(question).all(), default=None)


def drop_standalone(tx: Tx, chat: int) -> int:
    """pending -> dropped, for notices that have not left: the person wants no more of them."""
    move = (
        update(outbox)
        .where(
            outbox.c.chat == chat, outbox.c.standalone, outbox.c.state == PartState.PENDING.value
        )
        .values(state=PartState.DROPPED.value)
    )
    return tx.execute(move).rowcount


_BY_RECEIPT = select(*COLUMNS).where(
    outbox.c.account == bindparam("on"), outbox.c.receipt == bindparam("named")
)


def by_receipt(tx: Tx, account: int, receipt: str) -> Part | None:
    """The part that a provider's id names, or None."""
    row = tx.execute(_BY_RECEIPT, {"on": account, "named": receipt}).first()
    return None if row is None else part_of(row)


_OWNED = (
    select(receipts.c.receipt)
    .join(outbox, outbox.c.id == receipts.c.outbox)
    .where(outbox.c.chat == bindparam("of"))
    .order_by(outbox.c.id.desc())
    .limit(literal_column("500"))
)


def owned_receipts(tx: Tx, chat: int) -> frozenset[str]:
    """Every receipt of the chat's parts: a look-up must not adopt one that is known, be it
    another part's or an earlier attempt's of the same one."""
    return frozenset(tx.scalars(_OWNED, {"of": chat}))


_HUMAN_ANSWERED = select(
    exists(
        select(1).where(
            outbox.c.chat == bindparam("of"),
            is_in(outbox.c.kind, PartKind.OPERATOR),
            outbox.c.sent_at > bindparam("after"),
            is_in(outbox.c.state, *sorted(ARRIVED)),
        )
    )
)


def human_answered(tx: Tx, chat: int, after: float) -> bool:
    """Whether an operator's words reached the chat after this moment."""
    return bool(tx.scalar(_HUMAN_ANSWERED, {"of": chat, "after": after}))
