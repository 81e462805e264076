"""Delivery status: a provider's reports on a part that it took, by callback or on request."""

from __future__ import annotations

import asyncio
import logging
from typing import assert_never

from bot.delivery import window
from bot.delivery.outcome import alarm, opt_out, receive, reconsider
from bot.domain.delivery import ARRIVED, DeliveryStatus, LateRefusal, PartState, Scope
from bot.domain.errors import DatabaseUnavailable
from bot.domain.reply import PartBody
from bot.leases.runtime import Runtime
from storage import accounts, audit_log, chats, early_statuses, outbox, runs
from storage.chats import Chat
from storage.notify import READY, part_topic
from storage.outbox import Attempt, Part
from storage.statements.tx import Tx

PLATFORM = "platform"
_ASKED_FOR = 5.0
"""Seconds that asking about a part may take; a callback may be quicker."""
_SAME_TIME = 2.0
"""Seconds by which a tag's time may lie before the part's own: both were read from one clock."""

_TOO_LATE = "refused after it had arrived"
_WEEK = 7 * 86_400.0
"""Seconds for which a platform may repeat a status."""

_log = logging.getLogger("answerback.delivery")


async def record_status(rt: Runtime, account: int, status: DeliveryStatus) -> int | None:
    """Record a delivery status and wake whoever waits for it. Returns its part; None if the
    message is not known as ours (yet). Raises DatabaseUnavailable."""
    found = await rt.db.write(_apply, rt, account, status)
    if found is None:
        return None
    part, doubled, due = found
    alarm(rt, part, doubled=doubled)
    rt.wakeups.tell(part_topic(part))
    if due:
        rt.wakeups.tell(READY)
    return part


async def record_early(rt: Runtime) -> None:
    """Record the early statuses whose message is known by now. Raises DatabaseUnavailable; what was
    recorded until then is recorded again next time, which changes nothing."""
    found, any_old = await rt.db.read(early_statuses.matched, list(rt.carriers))
    for account, status in found:
        await record_status(rt, account, status)
    if found or any_old:
        await rt.db.write(early_statuses.drop, found)


async def ask(rt: Runtime, awaited: int) -> None:
    """Ask the platform for the status of a part that no report has come for, and record it. If
    there is no answer, or the database is away, the next call tries again."""
    try:
        part = await rt.db.read(outbox.get, awaited)
        carrier = None if part is None else rt.carriers.get(part.account)
        if part is None or carrier is None or part.confirmed or not part.receipt:
            return
        async with asyncio.timeout(_ASKED_FOR):
            status = await carrier.status(part.receipt)
        if status is not None and status.state is not None:
            await record_status(rt, part.account, status)
    except (TimeoutError, DatabaseUnavailable) as error:
        _log.info("part %d: its status is not known: %s", awaited, type(error).__name__)


def _apply(
    tx: Tx, rt: Runtime, account: int, status: DeliveryStatus
) -> tuple[int, bool, bool] | None:
    """Record the receipt, and the state if it goes forward. Returns the part, whether the person
    has it twice, and whether something may be due now. A report may come repeatedly, out of order,
    or before our own call has returned."""
    found = _part_of(tx, account, status)
    if found is None:
        if status.state is not None:
            early_statuses.keep(tx, account, status)
        return None
    if found.receipt == status.receipt and found.state in ARRIVED and status.state in ARRIVED:
        # The common case: only this row changes, and a run that waits for the report is due.
        chats.lock_with_next(tx, found.chat)
        awaited = outbox.confirm_sent(tx, found.id, status)
        if awaited is not None:
            return found.id, False, awaited and found.run is not None and runs.hasten(tx, found.run)
    chat = chats.lock(tx, found.chat)
    attempt = Attempt(found.id, status.attempt or found.attempts)
    doubled = receive(tx, attempt, status.receipt, found.chat)
    part = outbox.get(tx, found.id)
    if part is not None and part.receipt == status.receipt:
        if status.state is PartState.REFUSED:
            _refused(tx, rt, chat, part, status)
        elif status.state is not None:
            outbox.confirm(tx, part.id, status.receipt, status.state, status.provider_status)
        if part.run is not None:
            reconsider(tx, part.run)
            runs.hasten(tx, part.run)
    return found.id, doubled, True


def _part_of(tx: Tx, account: int, status: DeliveryStatus) -> Part | None:
    """The part, by our own id if the status carries it, else by its receipt. An id of ours only
    counts for an attempt that this database knows: a provider may also report on what was sent
    from a database that has been replaced."""
    if status.part:
        part = outbox.get(tx, status.part)
        if part is not None and part.account == account and _ours(part, status):
            return part
    return outbox.by_receipt(tx, account, status.receipt)


def _ours(part: Part, status: DeliveryStatus) -> bool:
    begun = 0 < status.attempt <= part.attempts
    return begun and (not status.began or status.began >= part.created_at - _SAME_TIME)


def _refused(tx: Tx, rt: Runtime, chat: Chat, part: Part, status: DeliveryStatus) -> None:
    """Record that the platform took a part and could not deliver it. Words that a person of ours
    sent with a device of their own (no attempt of ours) are left alone."""
    if not part.attempts:
        return
    carrier = rt.carriers[part.account]
    reaction = carrier.reaction(status.code)
    if reaction is LateRefusal.NONE:
        return
    why = f"{carrier.explain(status.code)}, the platform reported {status.provider_status}"
    kept = outbox.refuse_sent(
        tx,
        part.id,
        status.receipt,
        scope=_SCOPES.get(reaction, Scope.PAYLOAD),
        status=status.provider_status,
        error=why,
        code=status.code,
    )
    if not kept:
        if part.state in (PartState.DELIVERED, PartState.READ):
            named = {"run": part.run, "chat": chat.id}
            audit_log.note_once(tx, PLATFORM, _TOO_LATE, why, within=_WEEK, **named)
        return
    audit_log.note(tx, PLATFORM, "refused after it was taken", why, run=part.run, chat=chat.id)
    _react(tx, rt, chat, part, status, why)


def _react(tx: Tx, rt: Runtime, chat: Chat, part: Part, status: DeliveryStatus, why: str) -> None:
    """Do what the refusal calls for: to the chat, the account or the part."""
    carrier = rt.carriers[part.account]
    match carrier.reaction(status.code):
        case LateRefusal.PERMANENT_CHAT:
            chats.park(tx, chat.id, why, part.started_at)
        case LateRefusal.OPTED_OUT:
            opt_out(tx, chat, why)
        case LateRefusal.WINDOW:
            _leave_outside(tx, rt, chat, part)
        case LateRefusal.ACCOUNT_DOWN:
            _send_again(tx, part, 0.0)
            if accounts.mark_down(tx, part.account, why, status.code):
                audit_log.note(tx, PLATFORM, "channel down", why)
        case LateRefusal.RESEND_ONCE:
            _send_again(tx, part, carrier.resend_after(status.code))
        case LateRefusal.PERMANENT_PAYLOAD:
            if (plainer := carrier.fallback_of(part.body)) is not None:
                _send_again(tx, part, 0.0, plainer)
        case LateRefusal.CONFIGURATION | LateRefusal.UNKNOWN | LateRefusal.NONE:
            pass
        case other:
            assert_never(other)


def _leave_outside(tx: Tx, rt: Runtime, chat: Chat, part: Part) -> None:
    """The window is closed: if the part is still wanted, send it in a template, or else invite the
    person to write again."""
    if not _wanted(tx, part):
        return
    if not window.try_template(tx, rt, part, standalone=_alone(tx, part)):
        window.invite(tx, rt, chat)


def _send_again(tx: Tx, part: Part, wait: float, body: PartBody | None = None) -> None:
    """Send the part once more: the platform's report proves that it did not arrive."""
    if _wanted(tx, part):
        outbox.send_again(tx, part.id, wait, standalone=_alone(tx, part), body=body)


_SCOPES = {
    LateRefusal.PERMANENT_CHAT: Scope.CHAT,
    LateRefusal.OPTED_OUT: Scope.CONSENT,
    LateRefusal.WINDOW: Scope.WINDOW,
}


def _alone(tx: Tx, part: Part) -> bool:
    """Tell whether no live run looks after this part, so that it has to be sent by itself."""
    if part.standalone or part.run is None:
        return True
    found = runs.find(tx, part.run)
    return found is None or found.ending is not None


def _wanted(tx: Tx, part: Part) -> bool:
    """Tell whether the part may still be sent: not if the person or an operator stopped its run."""
    found = None if part.run is None else runs.find(tx, part.run)
    return found is None or found.ending is None or not found.ending.stopped
