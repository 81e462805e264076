"""Payloads as they arrived (one that nobody could parse is a dead letter), and erasure."""

from __future__ import annotations

import sqlalchemy as sa

from storage.engine.binds import REASON
from storage.engine.chat_rows import Erasure
from storage.engine.clock import now
from storage.engine.insert import InsertOrSkip
from storage.engine.tx import Tx
from storage.schema.tables import edits, inbound, payloads

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
    .values(error=None, ignored=REASON)
)


def dismiss_dead_letter(tx: Tx, payload: int, reason: str) -> bool:
    """A dead letter needs nobody's eyes any more; it stays stored. False: it is none."""
    return tx.execute(_DISMISS, {"payload_id": payload, "reason": reason}).rowcount == 1


_NO_WORDS = dict.fromkeys(("text", "sender_name", "forwarded_from", "button"), "")
forget = Erasure(
    inbound,
    lambda page: [
        sa.update(payloads).where(payloads.c.inbound.in_(page)).values(body=""),
        sa.update(edits).where(edits.c.inbound.in_(page)).values(text="", text_before=""),
        sa.update(inbound)
        .where(inbound.c.id.in_(page))
        .values(**_NO_WORDS, attachments="[]", extra="{}", quoted=None),
    ],
)
