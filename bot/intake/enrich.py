"""A message that a webhook and the platform's list both told of: each knows something more.

The list tells less of the content, but it knows when the message was written.
"""

from __future__ import annotations

from bot.domain.message import Inbound
from storage import audit_log, inbox, runs
from storage.chats import Chat
from storage.engine.tx import Tx


def enrich(tx: Tx, account: int, chat: Chat, message: Inbound) -> int | None:
    """Let a run that was never claimed read what the webhook tells beyond the list. Returns
    the message whose payload this is, or None when it tells nothing new. The chat is locked."""
    if message.sent_at is not None:
        inbox.fill_sent_times(tx, account, {message.request_id: message.sent_at})
    found = inbox.listed_only(tx, account, message)
    if found is None:
        return None
    stored, run = found
    if run is None or runs.lock_unclaimed(tx, run):
        inbox.enrich(tx, stored, message)
        audit_log.note(tx, "platform", "told more by its webhook", run=run, chat=chat.id)
    return stored
