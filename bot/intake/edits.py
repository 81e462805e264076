"""Edits of messages that are recorded, and blocks of chats that are known."""

from __future__ import annotations

from bot.domain.message import Inbound, Membership
from storage import audit_log, chats, inbox, runs
from storage.engine.tx import Tx

PLATFORM = "platform"


def edit(tx: Tx, account: int, message: Inbound, edited_at: float) -> int | None:
    """Record an edit of a message; it is read by a run that was never claimed. Returns the
    message, or None when it was never recorded: an edit alone is answered by nothing."""
    known = inbox.known(tx, account, message.request_id)
    if known is None:
        return None
    stored, run, _ = known
    found = None if run is None else runs.find(tx, run)
    used = False
    if found is not None:
        chats.lock(tx, found.chat)
        used = runs.lock_unclaimed(tx, found.id)
    now = inbox.known(tx, account, message.request_id)  # Read again, under the chat's lock.
    before = "" if now is None else now[2]
    if inbox.store_edit(tx, stored, edited_at, before, message.text, used=used) and used:
        inbox.use_edit(tx, stored, edited_at, message.text)
    return stored


def membership(tx: Tx, account: int, event: Membership) -> bool:
    """Blocked: every topic of the chat is parked. Let in again: all are reachable. False when
    the chat is not known."""
    found = chats.at_address(tx, account, event.address.chat)
    for chat in found:
        parked = chats.lock(tx, chat).unreachable_reason is not None
        if event.reachable and not parked:
            continue
        if event.reachable:
            chats.unpark(tx, chat)
            audit_log.note(tx, PLATFORM, "reachable again", event.reason, chat=chat)
        elif chats.park(tx, chat, event.reason, event.at):
            audit_log.note(tx, PLATFORM, "chat parked", event.reason, chat=chat)
    return bool(found)
