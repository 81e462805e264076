"""A provider's later word on a part: status callbacks and looks at its records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bot.domain.delivery import CallbackReaction, PartState, Scope, Witness
from bot.domain.ending import Ending
from bot.flows.outcome import alarm, receive, reconsider
from bot.flows.runtime import Runtime
from storage import accounts, chats, events, outbox, runs
from storage.outbox import Attempt, Part
from storage.tx import Tx
from storage.wakeup import READY, part_topic

ITS_WORD = "provider"


class Reacts(Protocol):
    """What a late refusal asks for, by the provider's code."""

    def reaction(self, code: str) -> CallbackReaction: ...


@dataclass(frozen=True, slots=True)
class Testimony:
    """The part that a witness spoke of; `doubled`: it told that the person has it twice."""

    part: int
    doubled: bool


async def hear(rt: Runtime, account: int, witness: Witness, channel: Reacts) -> int | None:
    """Write a witness down and wake who waits for it. Returns the part that it is about, or
    None for a message that is not ours. Raises DatabaseUnavailable."""
    told = await rt.db.write(testify, account, witness, channel)
    if told is None:
        return None
    alarm(rt, told.part, doubled=told.doubled)
    rt.wakeups.tell(part_topic(told.part))
    rt.wakeups.tell(READY)
    return told.part


def testify(tx: Tx, account: int, witness: Witness, channel: Reacts) -> Testimony | None:
    """Write a witness down: the receipt at once, the state only forward. Repeats, and words
    that come out of order or before our own call returned, are harmless."""
    found = _part_of(tx, account, witness)
    if found is None:
        return None
    chats.lock(tx, found.chat)
    number = witness.attempt or found.attempts
    doubled = receive(tx, Attempt(found.id, number), witness.receipt, found.chat)
    part = outbox.get(tx, found.id)
    if part is not None and part.receipt == witness.receipt:
        _follow(tx, part, witness, channel)
    return Testimony(found.id, doubled)


def _follow(tx: Tx, part: Part, witness: Witness, channel: Reacts) -> None:
    """What the part's own message came to."""
    if witness.state is PartState.REFUSED:
        _refused(tx, part, witness, channel.reaction(witness.code))
    elif witness.state is not None:
        outbox.witness(tx, part, witness.state, witness.provider_status)
    if part.run is not None:
        reconsider(tx, part.run)


def _part_of(tx: Tx, account: int, witness: Witness) -> Part | None:
    """The part by our own id where the witness carries it, else by its receipt."""
    if witness.part:
        part = outbox.get(tx, witness.part)
        if part is not None and part.account == account:
            return part
    return outbox.by_receipt(tx, account, witness.receipt)


def _refused(tx: Tx, part: Part, witness: Witness, reaction: CallbackReaction) -> None:
    """The provider took it and could not bring it."""
    if reaction is CallbackReaction.NONE:
        return
    reason = f"the provider reported {witness.provider_status}"
    scope = _SCOPES.get(reaction, Scope.PAYLOAD)
    if not outbox.late_refusal(tx, part.id, scope, witness.provider_status, reason, witness.code):
        return
    events.note(
        tx,
        ITS_WORD,
        "refused after it was taken",
        f"code {witness.code}",
        run=part.run,
        chat=part.chat,
    )
    if scope is Scope.CHAT:
        chats.park(tx, part.chat, f"{reason} ({witness.code})")
    if reaction is CallbackReaction.CONFIGURATION:
        accounts.mark_down(tx, part.account, f"{reason} ({witness.code})")
    if reaction is CallbackReaction.RESEND_ONCE and part.resends < 1:
        ended = part.run is None or _ended(tx, part.run)
        outbox.resend(tx, part.id, part.attempts, loose=ended or part.loose)
    elif part.run is not None:
        runs.correct_ending(
            tx, part.run, Ending.ANSWERED, Ending.UNDELIVERABLE, f"{reason} ({witness.code})"
        )


_SCOPES = {
    CallbackReaction.PERMANENT_CHAT: Scope.CHAT,
    CallbackReaction.WINDOW: Scope.WINDOW,
}


def _ended(tx: Tx, run: int) -> bool:
    found = runs.find(tx, run)
    return found is None or found.ending is not None
