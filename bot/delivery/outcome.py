"""Recording the outcome of an attempt, with what follows from it for the chat and the account."""

from __future__ import annotations

import logging
from typing import assert_never

from bot.delivery import window
from bot.domain.decisions.verdict import review
from bot.domain.delivery import (
    ChannelDown,
    Lookup,
    NotSent,
    Outcome,
    Refused,
    Scope,
    Sent,
    Unknown,
)
from bot.domain.ending import Ending
from bot.domain.message import Address
from bot.leases.runtime import Runtime
from storage import accounts, audit_log, chats, outbox, runs
from storage.chats import Chat, migrate
from storage.outbox import Attempt, Part
from storage.statements.tx import Tx

_log = logging.getLogger("answerback.delivery")
_DOUBLE = "two receipts for one part"
_MAY_HAVE_ARRIVED = (Ending.UNCERTAIN, Ending.APOLOGISED)


def lock_chat(tx: Tx, chat: int, outcome: Outcome | Lookup | None) -> Chat:
    """Lock the chat of an outcome, before any of its rows. If the outcome says that the chat has a
    new address, the chat that is known there is locked with it."""
    if isinstance(outcome, NotSent) and outcome.moved_to:
        known = chats.get(tx, chat)
        chats.lock_both(tx, known.id, known.account, _moved(known, outcome))
    return chats.lock(tx, chat)


def _moved(chat: Chat, outcome: NotSent) -> Address:
    return Address(outcome.moved_to, chat.address.topic)


def record(tx: Tx, rt: Runtime, attempt: Attempt, outcome: Outcome | Lookup, chat: Chat) -> bool:
    """Record the outcome of an attempt. The chat is locked. If the part has moved on since, only
    a receipt still counts.

    True: the part had arrived before, so the person has it twice (call `alarm` after the commit).
    """
    match outcome:
        case Sent() as sent:
            return receive(tx, attempt, receipt_of(attempt, sent), chat.id)
        case NotSent() as failed:
            _not_sent(tx, attempt, failed, chat)
        case Refused() as refused:
            _refused(tx, rt, attempt, refused, chat)
        case ChannelDown() as down:
            outbox.not_sent(tx, attempt, 0.0, down.reason, down.code)
            why = f"{down.reason} ({down.code})" if down.code else down.reason
            if accounts.mark_down(tx, chat.account, why, down.code):
                audit_log.note(tx, "delivery", "channel down", why)
        case Unknown(reason, code):
            outbox.doubt(tx, attempt, reason, code)
        case Lookup.NOT_FOUND:
            outbox.looked(tx, attempt)
        case Lookup.CANNOT_TELL:
            pass
        case other:
            assert_never(other)
    return False


def receipt_of(attempt: Attempt, sent: Sent) -> str:
    """The provider's id for what it took, or one of ours if it gave none."""
    return sent.receipt or f"unnamed-{attempt.part}-{attempt.number}"


def receive(tx: Tx, attempt: Attempt, receipt: str, chat: int) -> bool:
    """Record a receipt. True: the part had arrived before."""
    if outbox.receive(tx, attempt, receipt):
        return False
    part = outbox.get(tx, attempt.part)
    run = None if part is None else part.run
    audit_log.note(tx, "delivery", _DOUBLE, f"part {attempt.part}", run=run, chat=chat)
    return True


def alarm(rt: Runtime, part: int, *, doubled: bool) -> None:
    """Report and count a part that the person has twice. Call it after the commit."""
    if doubled:
        _log.error("part %d has two receipts: the person has it twice", part)
        rt.observer.double_receipts.inc()


def _refused(tx: Tx, rt: Runtime, attempt: Attempt, refused: Refused, chat: Chat) -> None:
    if not outbox.refuse(tx, attempt, refused.scope, refused.reason, refused.code):
        return
    match refused.scope:
        case Scope.CHAT:
            chats.park(tx, chat.id, refused.reason)
            audit_log.note(tx, "delivery", "chat parked", refused.reason, chat=chat.id)
        case Scope.CONSENT:
            opt_out(tx, chat, refused.reason)
        case Scope.WINDOW:
            part = outbox.get(tx, attempt.part)
            if part is not None:
                window.try_template(tx, rt, part, standalone=part.standalone)
        case Scope.PAYLOAD:
            pass
        case other:
            assert_never(other)


def opt_out(tx: Tx, chat: Chat, reason: str) -> None:
    """Opt the person out, as they asked the platform to."""
    if chat.opted_out_at is None:
        chats.opt_out(tx, chat.id, out=True)
        audit_log.note(tx, "platform", "opted out", reason, chat=chat.id)


def _not_sent(tx: Tx, attempt: Attempt, failed: NotSent, chat: Chat) -> None:
    wait = failed.retry_after or 0.0
    if failed.moved_to:
        # A group became a supergroup: the same conversation under its new address.
        migrate(tx, chat.account, chat.address, _moved(chat, failed))
        wait = 0.0
    if failed.limited is not None:
        chats.hold_back(tx, chat.id, wait)
    outbox.not_sent(tx, attempt, wait, failed.reason, failed.code)


def record_alone(tx: Tx, rt: Runtime, part: Part, outcome: Outcome | Lookup) -> bool:
    """Record the outcome of a part that no running turn in this process looks after. True: the
    person has it twice."""
    chat = lock_chat(tx, part.chat, outcome)
    doubled = record(tx, rt, Attempt(part.id, part.attempts, part.looks), outcome, chat)
    reconsider(tx, part.run)
    return doubled


def reconsider(tx: Tx, run: int | None) -> None:
    """Recompute the ending of a run that is over, after late news of its parts. The chat is
    locked.

    A part that is pending again was proven not to have left. If the run ended because that was in
    doubt, the part is now sent as a standalone part, before the notice about the doubt if that has
    not left yet. After any other ending it is dropped.
    """
    found = None if run is None else runs.find(tx, run)
    if run is None or found is None or found.ending is None:
        return
    if found.ending in _MAY_HAVE_ARRIVED:
        outbox.send_alone(tx, run)
    else:
        outbox.drop_pending(tx, run)
    answer = [p.facts for p in outbox.of_run_any(tx, run) if p.replaced_by is None]
    fits = review(found.ending, answer)
    if fits is None or not runs.correct_ending(tx, run, found.ending, fits):
        return
    audit_log.note(
        tx, "delivery", f"{fits.ending.value} after all", fits.words, run=run, chat=found.chat
    )
    if fits.ending is not Ending.UNCERTAIN:
        outbox.drop_notice(tx, run, outbox.Notice.UNCERTAIN)
