"""Payloads as they arrived (one that nobody could parse is a dead letter), and erasure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.binds import REASON
from storage.engine.chat_rows import Erasure
from storage.engine.clock import now
from storage.engine.insert import insert_rows
from storage.engine.sets import Rows
from storage.engine.tx import Tx
from storage.schema.tables import edits, inbound, payloads


class NewPayload(NamedTuple):
    """A payload to be kept, with what it is: a message's, answered by nothing for the reason
    `ignored`, or, with `error`, a dead letter."""

    account: int
    body: str
    digest: str
    message: int | None = None
    ignored: str | None = None
    error: str | None = None


_new = Rows(
    "new",
    account=sa.BigInteger(),
    body=sa.Text(),
    digest=sa.Text(),
    inbound=sa.BigInteger(),
    ignored=sa.Text(),
    error=sa.Text(),
)
_STORE = insert_rows(payloads, _new, received_at=now).on_conflict_do_nothing()


def store_payloads(tx: Tx, new: Sequence[NewPayload]) -> None:
    """Keep what arrived; a dead letter once."""
    tx.later(_STORE, _new.of(new))


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
