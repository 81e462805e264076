"""The transaction between two calls to a provider, for one run or for many.

It records the outcome of the last call, decides what comes next, and commits that decision before
anything is sent. So a reply of n parts costs n commits after it is stored, and one more for each
part that has to wait; the last of them ends the run and promotes the chat's next run.

There are two forms of this transaction. The ordinary case, a part that its provider took, is
handled for many runs at once (`RECEIVE`). Everything else is handled run by run (`advance`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import assert_never

from bot.delivery.clearance import clearance, may_begin
from bot.delivery.context import Shared
from bot.delivery.finish import end_run
from bot.delivery.outcome import lock_chat, receipt_of, reconsider, record
from bot.domain.decisions.verdict import (
    Doubt,
    LookUp,
    PartFacts,
    Resend,
    SendPart,
    Unheard,
    Wait,
    plan,
)
from bot.domain.delivery import (
    DOWN,
    Forbidden,
    Hold,
    Lookup,
    Outcome,
    PartState,
    Sent,
)
from bot.domain.ending import Close, Ending
from bot.domain.errors import StaleLease
from bot.domain.message import Address
from bot.domain.ports import Recipient
from bot.domain.reply import PartKind
from bot.domain.run import Run, RunState
from bot.leases.runtime import Runtime
from storage import chats, outbox, runs
from storage.chats import Chat
from storage.engine.lane import LeftOut
from storage.outbox import Attempt, Part, Receipt
from storage.runs import Claimant
from storage.statements import clock
from storage.statements.tx import Tx
from storage.views.evidence import Case, address_now, gather

LOST_IN_SENDING = "the process died while it was being sent"


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one attempt, or what a look at the provider's list told of it."""

    attempt: Attempt
    outcome: Outcome | Lookup


@dataclass(frozen=True, slots=True)
class Send:
    """Call the provider for this part, at this address: that it is `sending` is committed.
    `more`: further parts wait behind it."""

    part: Part
    address: Address
    more: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """Ask the provider about this uncertain part, at every address of the chat, since it may have
    got a new one meanwhile. `owned` are receipts that belong to other parts."""

    part: Part
    owned: frozenset[str]
    addresses: Sequence[Address]

    @staticmethod
    def read(tx: Tx, part: Part) -> Look:
        """The look for this part, with what it needs from the rows."""
        return Look(part, outbox.owned_receipts(tx, part.chat), chats.addresses(tx, part.chat))


@dataclass(frozen=True, slots=True)
class InCall:
    """Wait for the call for this part that an earlier turn in this process began."""

    part: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for `seconds`, or until the platform reports on the part `awaited`, if it is sooner."""

    seconds: float
    awaited: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The run is over.

    `ready`: something may be due now, a notice or the chat's next run. `follows` is that next run
    if it is already claimed for the place of the one that ended.
    """

    ending: Ending
    ready: bool
    follows: Case | None = None


class Halt(Enum):
    """A next act that needs no further values: get a permit, or stop delivering here."""

    NEEDS_PERMIT = "a part may leave as soon as the rate limits permit it"
    GAVE_BACK = "the run is ready again, due later: whoever claims it then goes on"
    LOST = "the run is somebody else's by now: stop quietly"


Next = Send | Look | InCall | Pause | Ended | Halt
"""The act that follows a transaction of delivery: one outside the database, a wait, or none."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The delivery of a run, as far as it is not in the rows.

    `permitted`: the rate limits let one part leave now. `calling` tells whether the call for a part
    is under way in this process. `heir` claims the chat's next run if this one ends; None where no
    place is kept for it.
    """

    rt: Runtime
    run: Run
    to: Recipient
    permitted: bool
    calling: Callable[[int], bool]
    heir: Claimant | None = None


def advance(tx: Tx, delivery: Delivery, result: Result | None) -> tuple[Next, bool]:
    """Record the result, decide what is next, and end the run if nothing is.

    Returns what is next, and whether the result proves that the person has its part twice. A
    receipt is recorded even if the run was taken over; everything else needs its claim.
    """
    chat = lock_chat(tx, delivery.run.chat, None if result is None else result.outcome)
    held = _held(tx, delivery.run)
    doubled = False
    if result is not None:
        doubled = record(tx, delivery.rt, result.attempt, result.outcome, chat)
        chat = chats.get(tx, chat.id)
        # If the chat moved to a new address, it may have been merged, which releases its runs.
        held = held and _held(tx, delivery.run)
    if not held:
        if result is not None:
            reconsider(tx, delivery.run.id)
        return Halt.LOST, doubled
    match result:
        case Result(outcome=Lookup.CANNOT_TELL) if not patience_ends(
            tx, delivery.rt, result.attempt
        ):
            wait = delivery.rt.retry.look_again
            act = _give_back(tx, delivery, wait, "the provider's list can't be asked")
        case _:
            act = _decide(tx, delivery, chat)
    return act, doubled


def patience_ends(tx: Tx, rt: Runtime, attempt: Attempt) -> bool:
    """Give up asking the provider about an attempt once it is old enough: it stays uncertain.
    Returns whether it was given up."""
    part = outbox.get(tx, attempt.part)
    if part is None or clock.read(tx) < part.started_at + rt.retry.look_patience:
        return False
    return outbox.give_up_looking(tx, part.id, attempt.number)


def _held(tx: Tx, run: Run) -> bool:
    try:
        runs.hold(tx, run.claim)
    except StaleLease:
        return False
    return True


def _decide(tx: Tx, delivery: Delivery, chat: Chat) -> Next:
    """Apply the moves of `plan` that only change rows, until one needs more than the database."""
    policy = delivery.rt.policy(delivery.run.account)
    while True:
        by_id = {p.id: p for p in outbox.of_run(tx, delivery.run.id)}
        parts = [p.facts for p in by_id.values()]
        now = clock.read(tx)
        match plan(parts, now, policy):
            case Doubt(facts):
                if (act := _left_sending(tx, delivery, chat, by_id[facts.id], parts)) is not None:
                    return act
            case Resend(facts):
                outbox.resend(tx, facts.id, facts.attempts)
            case Unheard(facts):
                heard = Attempt(facts.id, facts.attempts, facts.looks)
                lease = delivery.rt.terms.work.lease.seconds
                outbox.wait_on(tx, heard, delivery.rt.retry.witness_step, lease)
            case LookUp() | Wait() | SendPart() as move:
                return _outward(tx, delivery, chat, by_id, move, now)
            case Close() as end:
                return _finish(tx, delivery, by_id.values(), end)
            case other:
                assert_never(other)


def _outward(
    tx: Tx,
    delivery: Delivery,
    chat: Chat,
    parts: Mapping[int, Part],
    move: LookUp | Wait | SendPart,
    now: float,
) -> Next:
    """Begin a move that needs the platform or time. While the account is down the run is kept
    instead, until the account is up."""
    if chat.down:
        runs.keep(tx, delivery.run.claim, DOWN)
        return Halt.GAVE_BACK
    match move:
        case LookUp(facts):
            return Look.read(tx, parts[facts.id])
        case Wait(until, why, awaited):
            return _wait(tx, delivery, until - now, why, awaited)
        case SendPart(facts):
            return _begin(
                tx, delivery, chat, parts[facts.id], [p.facts for p in parts.values()], now
            )
        case other:
            assert_never(other)


def _left_sending(
    tx: Tx, delivery: Delivery, chat: Chat, part: Part, parts: Sequence[PartFacts]
) -> Next | None:
    """Go on with a part that is marked as being sent: wait for its call, or make it. None: whoever
    marked it is gone, and it is uncertain now."""
    if delivery.calling(part.id):
        return InCall(part.id)
    if part.holder == delivery.run.holder:
        # We marked it ourselves, in a commit whose answer was lost: the call was never made.
        return _send(tx, delivery, chat, part, parts)
    outbox.doubt(tx, Attempt(part.id, part.attempts), LOST_IN_SENDING)
    return None


def _begin(
    tx: Tx, delivery: Delivery, chat: Chat, part: Part, parts: Sequence[PartFacts], now: float
) -> Next:
    """Mark the part as being sent, if it may leave now."""
    match clearance(tx, delivery.rt, chat, part, now):
        case Hold(float() as until, reason):
            return _wait(tx, delivery, until - now, reason, None)
        case Hold(_, reason):
            return _give_back(tx, delivery, 0.0, reason)
        case Forbidden(_, end):
            return _end(tx, delivery, end)
        case None:
            pass
    if not delivery.permitted:
        return Halt.NEEDS_PERMIT
    begun = outbox.mark_sending(tx, delivery.run.claim, part.id)
    return Halt.LOST if begun is None else _send(tx, delivery, chat, begun, parts)


def _send(tx: Tx, delivery: Delivery, chat: Chat, part: Part, parts: Sequence[PartFacts]) -> Send:
    more = any(p.number > part.number and p.state is PartState.PENDING for p in parts)
    return Send(part, address_now(tx, delivery.to, chat), more)


def _wait(tx: Tx, delivery: Delivery, seconds: float, why: str, awaited: int | None) -> Next:
    return _in_place(delivery.rt, seconds, awaited) or _give_back(tx, delivery, seconds, why)


def _in_place(rt: Runtime, seconds: float, awaited: int | None) -> Pause | None:
    """The wait, if it is spent here: it is short, or for a delivery status. None: the run is to be
    given back meanwhile."""
    if awaited is not None:
        return Pause(min(seconds, rt.retry.ask_status_every), awaited)
    return Pause(seconds) if seconds <= rt.retry.short_wait else None


def _give_back(tx: Tx, delivery: Delivery, seconds: float, why: str) -> Next:
    runs.give_back(tx, delivery.run.claim, seconds, why)
    return Halt.GAVE_BACK


def _finish(tx: Tx, delivery: Delivery, parts: Iterable[Part], end: Close) -> Next:
    """End the run. Where the parts were an apology, the cause is that of the apology."""
    apologised = any(p.kind is PartKind.APOLOGY for p in parts)
    run = runs.find(tx, delivery.run.id) if apologised else None
    if run is None:
        return _end(tx, delivery, end)
    why, cause = run.detail, run.cause or end.cause
    match end.ending:
        case Ending.UNDELIVERABLE:
            end = Close(Ending.FAILED, cause, f"{why}; the apology was refused: {end.words}")
        case Ending.UNCERTAIN:
            end = Close(Ending.APOLOGISED, cause, f"{why}; the apology may not have arrived")
        case _:
            end = Close(Ending.APOLOGISED, cause, why)
    return _end(tx, delivery, end)


def _end(tx: Tx, delivery: Delivery, end: Close) -> Next:
    return Ended(end.ending, end_run(tx, delivery.rt, delivery.run, end))


@dataclass(frozen=True, slots=True, eq=False)
class Received:
    """One part that its provider took: what `RECEIVE` moves."""

    delivery: Delivery
    attempt: Attempt
    sent: Sent

    @property
    def run(self) -> Run:
        """The run whose part it is."""
        return self.delivery.run

    @property
    def receipt(self) -> Receipt:
        """The receipt of its attempt."""
        named = receipt_of(self.attempt, self.sent)
        return Receipt(self.attempt, named, reported=self.run.account in self.delivery.rt.carriers)


def _advance_each(tx: Tx, received: Sequence[Received]) -> Sequence[tuple[Next, bool] | LeftOut]:
    """As `advance`, for those for which something ordinary is next. That is decided for all of
    them before anything is written; the others are left out."""
    locked, now = chats.lock_each(tx, [one.run.chat for one in received])
    free = {one: locked[one.run.chat] for one in received if one.run.chat in locked}
    replies = outbox.of_held(tx, [one.run.claim for one in free])
    held = {one: replies[one.run.id] for one in free if one.run.id in replies}
    parts = {one: _with_receipt(one.attempt, reply.parts) for one, reply in held.items()}
    planned = {one: _ordinary(one.delivery, free[one], parts[one], now) for one in held}
    ordinary = [one for one, act in planned.items() if act is not None]
    recorded = outbox.receive_first(tx, [one.receipt for one in ordinary])
    moves = {one: planned[one] for one in ordinary if one.attempt.part in recorded}
    ends = [(one.run.claim, act) for one, act in moves.items() if isinstance(act, Close)]
    ended = runs.settle_each(tx, ends)
    followed = [one for one in held if one.run.id in ended and held[one].waits]
    heads = _go_on(tx, followed)
    cases = gather(tx, [run for run in heads.values() if run.state is RunState.RUNNING])
    follows = {case.run.chat: case for case in cases}
    goes = [(one.run.claim, s.part.id) for one, s in moves.items() if isinstance(s, SendPart)]
    begun = outbox.mark_sending_each(tx, goes)

    def told(one: Received) -> tuple[Next, bool] | LeftOut:
        match moves.get(one):
            case None:
                return LeftOut.ALONE if one in free else LeftOut.LOCKED
            case Close(ending) if one.run.id in ended:
                chat = one.run.chat
                ready = chat in heads and chat not in follows
                return Ended(ending, ready, follows.get(chat)), False
            case SendPart(facts) if facts.id in begun:
                return _send(tx, one.delivery, free[one], begun[facts.id], parts[one]), False
            case Pause() | Halt() as act:
                return act, False
            case _:
                return Halt.LOST, False

    return [told(one) for one in received]


def _go_on(tx: Tx, followed: Sequence[Received]) -> Mapping[int, Run]:
    """Promote the next runs of these chats; where a place is kept, the run is claimed as well.
    Returns them by their chats."""
    heirs = {one.run.chat: by for one in followed if (by := one.delivery.heir) is not None}
    of = [one.run.chat for one in followed]
    if not heirs:
        return runs.promote_each(tx, of)
    by = next(reversed(heirs.values()))  # all the same, unless a new session began meanwhile
    return runs.promote_each(tx, of, [chat for chat, heir in heirs.items() if heir == by], by)


def _with_receipt(attempt: Attempt, parts: Sequence[PartFacts]) -> Sequence[PartFacts]:
    """The parts as they will be once this attempt has its receipt; none if it is no longer being
    sent."""
    under_way = (attempt.part, attempt.number, PartState.SENDING)
    if not any((p.id, p.attempts, p.state) == under_way for p in parts):
        return ()
    return [replace(p, state=PartState.SENT) if p.id == attempt.part else p for p in parts]


def _ordinary(
    delivery: Delivery, chat: Chat, parts: Sequence[PartFacts], now: float
) -> Close | SendPart | Pause | Halt | None:
    """The next act if it is ordinary: the end of an answer, its next part, or a wait that is spent
    here. None: `advance` has to decide."""
    match plan(parts, now, delivery.rt.policy(delivery.run.account)):
        case Close(Ending.ANSWERED) as end if delivery.run.handoff is None:
            return end
        case SendPart() as move if may_begin(delivery.rt, chat, now):
            return move if delivery.permitted else Halt.NEEDS_PERMIT
        case Wait(until, _, awaited) if not chat.down:
            return _in_place(delivery.rt, until - now, awaited)
        case _:
            return None


RECEIVE = Shared(
    _advance_each,
    lambda tx, one: advance(tx, one.delivery, Result(one.attempt, one.sent)),
    lambda one: one.run.chat,
)
"""The shared move for a part that its provider took; it answers as `advance` does."""
