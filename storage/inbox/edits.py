"""Edits of messages, used or only recorded."""

from __future__ import annotations

import sqlalchemy as sa

from storage.schema.tables import edits
from storage.statements.binds import MOMENT
from storage.statements.insert import InsertOrSkip
from storage.statements.tx import Tx

_STORE = InsertOrSkip(edits, edits.c.inbound)
_IN_THAT_SECOND = (
    sa.select(edits.c.edited_at, edits.c.text)
    .where(
        edits.c.inbound == sa.bindparam("message_id"),
        edits.c.edited_at >= MOMENT,
        edits.c.edited_at < MOMENT + 1.0,
    )
    .order_by(edits.c.edited_at)
)
_SAME_SECOND = 0.001
"""Between two edits that the platform dates with one second."""


def store_edit(
    tx: Tx, message: int, edited_at: float, before: str, after: str, *, used: bool
) -> bool:
    """Record an edit. False: it was recorded before."""
    for earlier in tx.execute(_IN_THAT_SECOND, {"message_id": message, "moment": edited_at}).all():
        if earlier.text == after:
            return False
        edited_at = earlier.edited_at + _SAME_SECOND
    values = {
        "inbound": message,
        "edited_at": edited_at,
        "text_before": before,
        "text": after,
        "used": used,
    }
    return _STORE.run(tx, values) is not None
