"""A message that a webhook and the platform's list both told of: each knows something more.

The list tells less of the content, but it knows when the message was written.
"""

from __future__ import annotations

from bot.domain.message import Inbound
from storage import audit_log, backfill
from storage.chats import Chat
from storage.engine.tx import Tx
from storage.runs import creation


def enrich(tx: Tx, account: int, chat: Chat, message: Inbound) -> int | None:
    """Let a run that was never claimed read what the webhook tells beyond the list. Returns
    the message whose payload this is, or None when it tells nothing new. The chat is locked."""
    if message.sent_at is not None:
        backfill.tell_times(tx, account, {message.request_id: message.sent_at})
    found = backfill.poorer(tx, account, message)
    if found is None:
        return None
    stored, run = found
    if run is None or creation.touch_unclaimed(tx, run):
        backfill.enrich(tx, stored, message)
        audit_log.note(tx, "platform", "told more by its webhook", run=run, chat=chat.id)
    return stored
