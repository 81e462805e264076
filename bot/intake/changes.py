"""The changes that a person makes to a message of theirs: other words, or its deletion."""

from __future__ import annotations

from bot.delivery.finish import after_end
from bot.domain.ending import Cause, Close, Ending
from bot.domain.message import Inbound, InboundKind, Revoked, Sender
from bot.intake.commands import PERSON
from bot.leases.runtime import Runtime
from storage import audit_log, chats, inbox, runs
from storage.engine.tx import Tx


def record_edit(
    tx: Tx, account: int, message: Inbound, edited_at: float, *, may_change: bool
) -> tuple[int | None, bool]:
    """Record an edit of a message; if its author may change anything, it is read by a run that
    was never claimed. Returns the message, None when it was never recorded, since an edit alone is
    answered by nothing; and whether its author deleted it, so that nothing of the edit is kept."""
    known = inbox.known(tx, account, message.request_id)
    if known is None:
        return None, False
    stored, run, _ = known
    found = None if run is None else runs.find(tx, run)
    used = False
    if found is not None:
        chats.lock(tx, found.chat)
        used = may_change and runs.lock_unclaimed(tx, found.id)
    now = inbox.known(tx, account, message.request_id)  # Read again, under the chat's lock.
    before = "" if now is None else now[2]
    if before == inbox.REVOKED:
        return stored, True
    if inbox.store_edit(tx, stored, edited_at, before, message.text, used=used) and used:
        inbox.use_edit(tx, stored, edited_at, message.text)
    return stored, False


def record_deletion(
    tx: Tx, rt: Runtime, account: int, event: Revoked
) -> tuple[int | None, tuple[int, ...]]:
    """Take the words out of a message that its author deleted. A run that would answer nothing
    else, and that nobody began, is withdrawn with it. Returns the message, None when it was never
    recorded, and the runs that ended."""
    known = inbox.known(tx, account, event.request_id)
    if known is None:
        return None, ()
    stored, run, _ = known
    found = None if run is None else runs.find(tx, run)
    if found is None:
        inbox.revoke(tx, stored)
        return stored, ()
    chats.lock(tx, found.chat)
    if not inbox.revoke(tx, stored):
        return stored, ()
    audit_log.note(tx, PERSON, "deleted a message", run=found.id, chat=found.chat)
    end = Close(Ending.WITHDRAWN, Cause.STOPPED)
    alone = len(inbox.of_run(tx, found.id)) == 1 and runs.lock_unclaimed(tx, found.id)
    if not alone or not runs.end_live(tx, found.id, end):
        return stored, ()
    after_end(tx, rt, found, end, PERSON)
    return stored, (found.id,)


def without_words(event: Revoked) -> Inbound:
    """A message that its author deleted before it came, as it is kept when it comes."""
    return Inbound(
        request_id=event.request_id,
        address=event.address,
        chat_kind=event.chat_kind,
        kind=InboundKind.TEXT,
        text=inbox.REVOKED,
        sender=Sender(event.address.chat),
        provider_id="",
    )
