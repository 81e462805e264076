"""Erasure of what people wrote: the rows stay, their words go."""

from __future__ import annotations

import sqlalchemy as sa

from storage.engine.pages import in_page, page_end
from storage.engine.tx import Tx
from storage.schema.tables import edits, inbound, payloads

_OF_CHAT = inbound.c.chat == sa.bindparam("chat_id")
_PAGE = page_end(inbound.c.id, _OF_CHAT)
_page = sa.select(inbound.c.id).where(_OF_CHAT, in_page(inbound.c.id))
_BLANK = (
    sa.update(payloads).where(payloads.c.inbound.in_(_page)).values(body=""),
    sa.update(edits).where(edits.c.inbound.in_(_page)).values(text="", text_before=""),
    sa.update(inbound)
    .where(_OF_CHAT, in_page(inbound.c.id))
    .values(
        text="",
        sender_name="",
        forwarded_from="",
        button="",
        attachments="[]",
        extra="{}",
        quoted=None,
    ),
)


def forget(tx: Tx, chat: int, after: int, until: int) -> int | None:
    """Take the words out of a page of the chat's messages, from id `after` to `until`; returns
    the last id, or None when there were no more."""
    last: int | None = tx.scalar(_PAGE, {"chat_id": chat, "after": after, "until": until})
    for blank in _BLANK if last is not None else ():
        tx.execute(blank, {"chat_id": chat, "after": after, "last": last})
    return last
