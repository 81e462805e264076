"""A provider's later word on a part: status callbacks and looks at its records."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import assert_never

from bot.delivery import window
from bot.delivery.outcome import alarm, opt_out, receive, reconsider
from bot.domain.delivery import CallbackReaction, PartState, Scope, Witness
from bot.domain.errors import DatabaseUnavailable
from bot.domain.ports import Carrier
from bot.leases.runtime import Runtime
from storage import accounts, audit_log, chats, outbox, runs
from storage.chats import Chat
from storage.engine.tx import Tx
from storage.notify import READY, part_topic
from storage.outbox import Attempt, Part

PLATFORM = "platform"
_ASKED_FOR = 5.0
"""Seconds that a question about a part may take: callbacks may come meanwhile."""
_SAME_TIME = 2.0
"""Seconds by which two readings of one database's clock may differ."""

_log = logging.getLogger("answerback.delivery")


@dataclass(frozen=True, slots=True)
class Testimony:
    """The part that a witness spoke of; `doubled`: it told that the person has it twice."""

    part: int
    doubled: bool


async def hear(rt: Runtime, account: int, witness: Witness) -> int | None:
    """Write a witness down and wake who waits for it. Returns the part that it is about, or
    None for a message that is not ours. Raises DatabaseUnavailable."""
    told = await rt.db.write(testify, rt, account, witness)
    if told is None:
        return None
    alarm(rt, told.part, doubled=told.doubled)
    rt.wakeups.tell(part_topic(told.part))
    rt.wakeups.tell(READY)
    return told.part


async def ask(rt: Runtime, awaited: int) -> None:
    """Ask the platform where a part stands that nobody has reported on; what it says is
    written down. No answer, and a database that is away, are left for the next time."""
    try:
        part = await rt.db.read(outbox.get, awaited)
        carrier = None if part is None else rt.carriers.get(part.account)
        if part is None or carrier is None or part.confirmed or not part.receipt:
            return
        async with asyncio.timeout(_ASKED_FOR):
            witness = await carrier.status(part.receipt)
        if witness is not None and witness.state is not None:
            await hear(rt, part.account, witness)
    except (TimeoutError, DatabaseUnavailable) as error:
        _log.info("part %d: its status is not known: %s", awaited, type(error).__name__)


def testify(tx: Tx, rt: Runtime, account: int, witness: Witness) -> Testimony | None:
    """Write a witness down: the receipt at once, the state only forward. Repeats, and words
    that come out of order or before our own call returned, are harmless."""
    found = _part_of(tx, account, witness)
    if found is None:
        return None
    chat = chats.lock(tx, found.chat)
    number = witness.attempt or found.attempts
    doubled = receive(tx, Attempt(found.id, number), witness.receipt, found.chat)
    part = outbox.get(tx, found.id)
    if part is not None and part.receipt == witness.receipt:
        _follow(tx, rt, chat, part, witness)
    return Testimony(found.id, doubled)


def _part_of(tx: Tx, account: int, witness: Witness) -> Part | None:
    """The part by our own id where the witness carries it, else by its receipt. An id of
    ours counts only for an attempt that this database knows: a provider also reports on what
    was sent from a database that is no more."""
    if witness.part:
        part = outbox.get(tx, witness.part)
        if part is not None and part.account == account and _ours(part, witness):
            return part
    return outbox.by_receipt(tx, account, witness.receipt)


def _ours(part: Part, witness: Witness) -> bool:
    begun = 0 < witness.attempt <= part.attempts
    return begun and (not witness.began or witness.began >= part.created_at - _SAME_TIME)


def _follow(tx: Tx, rt: Runtime, chat: Chat, part: Part, witness: Witness) -> None:
    """What the part's own message came to."""
    if witness.state is PartState.REFUSED:
        _refused(tx, rt, chat, part, witness)
    elif witness.state is not None:
        outbox.confirm(tx, part.id, witness.receipt, witness.state, witness.provider_status)
    if part.run is not None:
        reconsider(tx, part.run)
        runs.hasten(tx, part.run)


def _refused(tx: Tx, rt: Runtime, chat: Chat, part: Part, witness: Witness) -> None:
    """The platform took it and could not bring it."""
    carrier = rt.carriers[part.account]
    reaction = carrier.reaction(witness.code)
    if reaction is CallbackReaction.NONE:
        return
    why = f"{carrier.explain(witness.code)}, the platform reported {witness.provider_status}"
    kept = outbox.refuse_sent(
        tx,
        part.id,
        witness.receipt,
        scope=_SCOPES.get(reaction, Scope.PAYLOAD),
        status=witness.provider_status,
        error=why,
        code=witness.code,
    )
    if not kept:
        return
    audit_log.note(tx, PLATFORM, "refused after it was taken", why, run=part.run, chat=chat.id)
    match reaction:
        case CallbackReaction.PERMANENT_CHAT:
            chats.park(tx, chat.id, why, part.started_at)
        case CallbackReaction.OPTED_OUT:
            opt_out(tx, chat, why)
        case CallbackReaction.WINDOW:
            _leave_outside(tx, rt, chat, part)
        case CallbackReaction.ACCOUNT_DOWN:
            _send_again(tx, carrier, part, witness.code, reaction)
            if accounts.mark_down(tx, part.account, why):
                audit_log.note(tx, PLATFORM, "channel down", why)
        case _:
            _send_again(tx, carrier, part, witness.code, reaction)


def _leave_outside(tx: Tx, rt: Runtime, chat: Chat, part: Part) -> None:
    """The window is closed: a template, if the words are still wanted."""
    if not _wanted(tx, part):
        return
    if not window.try_template(tx, rt, part, standalone=_alone(tx, part)):
        window.invite(tx, rt, chat)


def _send_again(
    tx: Tx, carrier: Carrier, part: Part, code: str, reaction: CallbackReaction
) -> None:
    """One more send, where the platform's word proves that it can't double anything."""
    if not _wanted(tx, part):
        return
    match reaction:
        case CallbackReaction.RESEND_ONCE:
            outbox.send_again(tx, part.id, carrier.resend_after(code), standalone=_alone(tx, part))
        case CallbackReaction.ACCOUNT_DOWN:
            outbox.send_again(tx, part.id, 0.0, standalone=_alone(tx, part))
        case CallbackReaction.PERMANENT_PAYLOAD:
            plainer = carrier.fallback_of(part.body)
            if plainer is not None:
                outbox.send_again(tx, part.id, 0.0, standalone=_alone(tx, part), body=plainer)
        case (
            CallbackReaction.PERMANENT_CHAT
            | CallbackReaction.OPTED_OUT
            | CallbackReaction.WINDOW
            | CallbackReaction.CONFIGURATION
            | CallbackReaction.NONE
            | CallbackReaction.UNKNOWN
        ):
            pass
        case other:
            assert_never(other)


_SCOPES = {
    CallbackReaction.PERMANENT_CHAT: Scope.CHAT,
    CallbackReaction.OPTED_OUT: Scope.CONSENT,
    CallbackReaction.WINDOW: Scope.WINDOW,
}


def _alone(tx: Tx, part: Part) -> bool:
    """Whether no run looks after this part any more, so that it goes out by itself."""
    if part.standalone or part.run is None:
        return True
    found = runs.find(tx, part.run)
    return found is None or found.ending is not None


def _wanted(tx: Tx, part: Part) -> bool:
    """Whether these words may still leave: not what the person or an operator stopped."""
    found = None if part.run is None else runs.find(tx, part.run)
    return found is None or found.ending is None or not found.ending.stopped
