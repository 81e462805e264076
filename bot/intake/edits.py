"""What happened to messages and chats that are known: edits, blocks, moves."""

from __future__ import annotations

from bot.domain.message import Inbound, Membership, Migrated
from storage import audit_log, chats, inbox, runs
from storage.chats import migrate
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
    before = _text_now(tx, account, message)
    if inbox.store_edit(tx, stored, edited_at, before, message.text, used=used) and used:
        inbox.use_edit(tx, stored, edited_at, message.text)
    return stored


def _text_now(tx: Tx, account: int, message: Inbound) -> str:
    """The text as it stands, read under the chat's lock."""
    known = inbox.known(tx, account, message.request_id)
    return "" if known is None else known[2]


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


def migrated(tx: Tx, account: int, event: Migrated) -> None:
    """The conversation goes on under another address."""
    migrate(tx, account, event.old, event.new)
