"""Payloads as they arrived. One that nobody could parse is a dead letter."""

from __future__ import annotations

import sqlalchemy as sa

from storage.engine.clock import now
from storage.engine.insert import InsertOrSkip
from storage.engine.tx import Tx
from storage.schema.tables import payloads

_STORE = InsertOrSkip(payloads, payloads.c.id, received_at=now)


def store_payload(
    tx: Tx,
    account: int,
    body: str,
    digest: str,
    *,
    message: int | None = None,
    ignored: str | None = None,
    error: str | None = None,
) -> bool:
    """Keep what arrived. False: this dead letter is kept already."""
    values = {
        "account": account,
        "inbound": message,
        "body": body,
        "digest": digest,
        "ignored": ignored,
        "error": error,
    }
    return _STORE.run(tx, values) is not None


_DISMISS = (
    sa.update(payloads)
    .where(payloads.c.id == sa.bindparam("payload_id"), payloads.c.error.is_not(None))
    .values(error=None, ignored=sa.bindparam("reason"))
)


def dismiss_dead_letter(tx: Tx, payload: int, reason: str) -> bool:
    """A dead letter needs nobody's eyes any more; it stays stored. False: it is none."""
    return tx.execute(_DISMISS, {"payload_id": payload, "reason": reason}).rowcount == 1
