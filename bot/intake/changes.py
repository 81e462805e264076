"""Changes that a person makes to a message of theirs: an edit, or its deletion."""

from __future__ import annotations

from dataclasses import replace

from bot.delivery.finish import after_end
from bot.domain.ending import Cause, Close, Ending
from bot.domain.message import Inbound, InboundKind, Revoked, Sender
from bot.intake.commands import PERSON
from bot.leases.runtime import Runtime
from storage import audit_log, chats, inbox, runs
from storage.chats import requests
from storage.statements.tx import Tx


def record_edit(
    tx: Tx, account: int, message: Inbound, edited_at: float, *, may_change: bool
) -> tuple[int | None, bool]:
    """Record an edit of a message. If `may_change`, a run that was never claimed reads it.

    Returns the message, or None if it was never recorded (an edit alone is not answered); and
    whether the message was deleted or forgotten, in which case the edit is not stored.
    """
    before = inbox.known(tx, account, message.request_id)
    if before is None:
        return None, False
    chats.lock(tx, before.chat)
    known = inbox.known(tx, account, message.request_id) or before  # Read again, under the lock.
    if known.text == inbox.REVOKED or requests.is_forgotten(tx, known.chat, known.id):
        return known.id, True
    unread = known.awaited or (known.run is not None and runs.lock_unclaimed(tx, known.run))
    newest = known.edited_at is None or known.edited_at <= edited_at
    used = may_change and unread and newest
    if inbox.store_edit(tx, known.id, edited_at, known.text, message.text, used=used) and used:
        inbox.use_edit(tx, known.id, edited_at, message.text)
    return known.id, False


def record_deletion(
    tx: Tx, rt: Runtime, account: int, event: Revoked
) -> tuple[int | None, tuple[int, ...]]:
    """Delete the words of a message that its author deleted. A run that would answer nothing else,
    and was never claimed, is withdrawn. Returns the message, or None if it was never recorded, and
    the runs that ended."""
    before = inbox.known(tx, account, event.request_id)
    if before is None:
        return None, ()
    chats.lock(tx, before.chat)
    known = inbox.known(tx, account, event.request_id) or before
    found = None if known.run is None else runs.find(tx, known.run)
    if not inbox.revoke(tx, known.id) or found is None:
        return known.id, ()
    audit_log.note(tx, PERSON, "deleted a message", run=found.id, chat=found.chat)
    end = Close(Ending.WITHDRAWN, Cause.STOPPED)
    nothing_left = all(message.text == inbox.REVOKED for message in inbox.of_run(tx, found.id))
    unread = nothing_left and runs.lock_unclaimed(tx, found.id)
    if not unread or not runs.end_live(tx, found.id, end):
        return known.id, ()
    after_end(tx, rt, found, end, PERSON)
    return known.id, (found.id,)


def not_come(message: Inbound) -> Inbound:
    """The row for a message whose edit came before it, until the message comes. The words are in
    the edits."""
    return replace(message, text="", sent_at=None, attachments=(), extra=inbox.OF_AN_EDIT)


def without_words(event: Revoked) -> Inbound:
    """The row for a message whose deletion came before it."""
    return Inbound(
        request_id=event.request_id,
        address=event.address,
        chat_kind=event.chat_kind,
        kind=InboundKind.TEXT,
        text=inbox.REVOKED,
        sender=Sender(event.address.chat),
        provider_id="",
    )
