"""Delivery of a run's stored parts, and the steps that every part takes on its way out.

May it leave (`clearance`), a place under the rate limits, marked `sending` under the guard of
whoever looks after it, the call, its outcome recorded, what follows: for a run's parts here, for
standalone ones in `bot.delivery.standalone`.

Everything that the database must know between two calls to a provider is one transaction,
`advance`: it records the last outcome, decides what comes next, and commits that decision
before anything leaves. A reply of n parts so costs n commits after it is stored (and one more
for each part that has to wait for its moment), the last of which ends the run and promotes
the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import assert_never

from bot.delivery import window
from bot.delivery.context import WorkerContext
from bot.delivery.finish import end_run, give_back
from bot.delivery.outcome import alarm, reconsider, record
from bot.delivery.rate_limit import Place
from bot.delivery.status import ask
from bot.domain.delivery import ChannelDown, Lookup, Outcome, PartState, Scope, Sent
from bot.domain.ending import Close, Ending
from bot.domain.errors import StaleLease
from bot.domain.message import Address
from bot.domain.ports import Recipient, SendRef
from bot.domain.reply import PartKind
from bot.domain.run import Run
from bot.domain.sendable import ChatDoor, Forbidden, Hold, Outgoing, sendable
from bot.domain.verdict import Doubt, LookUp, Resend, SendPart, Wait, plan
from bot.leases.checkpoints import Checkpoint
from bot.leases.runtime import Runtime
from storage import chats, outbox, runs
from storage.chats import Chat
from storage.engine import clock
from storage.engine.tx import Tx
from storage.notify import part_topic
from storage.outbox import Attempt, Part
from storage.views.evidence import address_now

LOST_IN_SENDING = "the process died while it was being sent"
_CALL_CHECKED = 5.0
"""Seconds after which the rows are read again while an earlier turn's call goes on."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one attempt, or what a look at the provider's list found of it."""

    attempt: Attempt
    outcome: Outcome | Lookup


@dataclass(frozen=True, slots=True)
class Send:
    """This part is `sending` now, committed: call the provider, at the chat's address. `more`
    says that parts wait behind it."""

    part: Part
    address: Address
    more: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """Ask the provider about this uncertain part: with the receipts that are known to be others',
    at every address of the chat, since it may have got a newer one."""

    part: Part
    owned: frozenset[str]
    addresses: Sequence[Address]

    @staticmethod
    def read(tx: Tx, part: Part) -> Look:
        """The question about this part."""
        return Look(part, outbox.owned_receipts(tx, part.chat), chats.addresses(tx, part.chat))


@dataclass(frozen=True, slots=True)
class InCall:
    """The call for this part, which an earlier turn here began, is under way."""

    part: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing may be done for `seconds`, or until `awaited` (a part) is reported on."""

    seconds: float
    awaited: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The run is over."""

    ending: Ending


class Stand(Enum):
    """Where the run stands when nothing but this is to be known."""

    NEEDS_PLACE = "a part may leave as soon as the rate limits give it a place"
    GAVE_BACK = "ready again, due later: somebody goes on with it then"
    LOST = "somebody else's: stop quietly"


Next = Send | Look | InCall | Pause | Ended | Stand


@dataclass(frozen=True, slots=True)
class Way:
    """What `advance` needs besides the rows. `placed` says that the rate limits let one part
    leave now; `calling` are the parts whose call is under way in this process."""

    rt: Runtime
    run: Run
    to: Recipient
    placed: bool
    calling: frozenset[int]


def door(rt: Runtime, chat: Chat, now: float) -> ChatDoor:
    """What the chat lets through now."""
    return ChatDoor(
        paused_until=chat.paused_until,
        held_until=chat.not_before,
        unreachable=chat.unreachable_reason or "",
        opted_out=chat.opted_out_at is not None,
        window_open=not rt.window_closed(chat.account, chat.last_inbound_at, now),
    )


def clearance(tx: Tx, rt: Runtime, chat: Chat, part: Part, now: float) -> Hold | Forbidden | None:
    """What keeps a pending part from leaving now; None when nothing does. In a closed window it
    is put into a template where there is one. The chat is locked."""
    outgoing = Outgoing(
        standalone=part.standalone,
        own_notice=part.kind is PartKind.NOTICE and part.run is None,
        posted_at=part.created_at,
    )
    chat_door, max_age = door(rt, chat, now), rt.terms.policy.answer_max_age
    verdict = sendable(outgoing, chat_door, now, max_age)
    if isinstance(verdict, Forbidden) and verdict.scope is Scope.WINDOW:
        otherwise = sendable(outgoing, replace(chat_door, window_open=True), now, max_age)
        if otherwise is None and window.put_into_template(tx, rt, part):
            return None
    return verdict


def advance(tx: Tx, way: Way, result: Result | None) -> tuple[Next, bool]:
    """Record the result, decide what is next, and end the run when nothing is. Returns that,
    and whether the person has the part of the result twice.

    A receipt is recorded whoever holds the run; everything else moves only under its claim.
    """
    chat = chats.lock(tx, way.run.chat)
    held = _held(tx, way.run)
    doubled = False
    if result is not None:
        doubled = record(tx, way.rt, result.attempt, result.outcome, chat)
        chat = chats.get(tx, chat.id)
        # A move may have merged the chat into an older one, which releases its runs.
        held = held and _held(tx, way.run)
    if not held:
        if result is not None:
            reconsider(tx, way.run.id)
        return Stand.LOST, doubled
    match result:
        case Result(outcome=Lookup.CANNOT_TELL) if not patience_ends(tx, way.rt, result.attempt):
            wait = way.rt.retry.look_again
            step = _give_back(tx, way, wait, "the provider's list can't be asked")
        case Result(outcome=ChannelDown()):
            step = _give_back(tx, way, 0.0, "the channel is down")
        case _:
            step = _decide(tx, way, chat)
    return step, doubled


def patience_ends(tx: Tx, rt: Runtime, attempt: Attempt) -> bool:
    """Whether nobody asks the provider any more about an attempt: then it stays uncertain."""
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


def _decide(tx: Tx, way: Way, chat: Chat) -> Next:
    """Apply the plan's moves on rows until one of them needs the outside."""
    policy = way.rt.policy(way.run.account)
    while True:
        parts = outbox.of_run(tx, way.run.id)
        by_id = {p.id: p for p in parts}
        now = clock.read(tx)
        match plan([p.facts for p in parts], now, policy):
            case Doubt(facts):
                part = by_id[facts.id]
                if part.id in way.calling:
                    return InCall(part.id)
                if part.holder == way.run.holder:
                    # Marked in a commit whose answer was lost: its call was never made.
                    return _send(way, chat, part, parts)
                outbox.doubt(tx, Attempt(facts.id, facts.attempts), LOST_IN_SENDING)
            case Resend(facts):
                outbox.resend(tx, facts.id, facts.attempts)
            case LookUp(facts):
                return Look.read(tx, by_id[facts.id])
            case Wait(until, why, awaited):
                return _wait(tx, way, until - now, why, awaited)
            case SendPart(facts):
                return _begin(tx, way, chat, by_id[facts.id], parts, now)
            case Close() as end:
                return _finish(tx, way, parts, end)
            case other:
                assert_never(other)


def _begin(tx: Tx, way: Way, chat: Chat, part: Part, parts: Sequence[Part], now: float) -> Next:
    """Mark the part as being sent, if it may leave now."""
    match clearance(tx, way.rt, chat, part, now):
        case Hold(float() as until, reason):
            return _wait(tx, way, until - now, reason, None)
        case Hold(_, reason):
            return _give_back(tx, way, 0.0, reason)
        case Forbidden(_, end):
            return _end(tx, way, end)
        case None:
            pass
    if not way.placed:
        return Stand.NEEDS_PLACE
    begun = outbox.mark_sending(tx, way.run.claim, part.id)
    return Stand.LOST if begun is None else _send(way, chat, begun, parts)


def _send(way: Way, chat: Chat, part: Part, parts: Sequence[Part]) -> Send:
    more = any(p.number > part.number and p.state is PartState.PENDING for p in parts)
    return Send(part, address_now(way.to, chat), more)


def _wait(tx: Tx, way: Way, seconds: float, why: str, awaited: int | None) -> Next:
    """Spend a short wait, or one for a status, in place; give the run back for a long one."""
    if awaited is not None:
        return Pause(min(seconds, way.rt.retry.ask_status_every), awaited)
    if seconds <= way.rt.retry.short_wait:
        return Pause(seconds)
    return _give_back(tx, way, seconds, why)


def _give_back(tx: Tx, way: Way, seconds: float, why: str) -> Next:
    runs.give_back(tx, way.run.claim, seconds, why)
    return Stand.GAVE_BACK


def _finish(tx: Tx, way: Way, parts: Sequence[Part], end: Close) -> Next:
    """End the run; one whose apology ended so has the cause of what it apologised for."""
    apologised = any(p.kind is PartKind.APOLOGY for p in parts)
    run = runs.find(tx, way.run.id) if apologised else None
    if run is None:
        return _end(tx, way, end)
    why, cause = run.detail, run.cause or end.cause
    match end.ending:
        case Ending.UNDELIVERABLE:
            end = Close(Ending.FAILED, cause, f"{why}; the apology was refused: {end.words}")
        case Ending.UNCERTAIN:
            end = Close(Ending.APOLOGISED, cause, f"{why}; the apology may not have arrived")
        case _:
            end = Close(Ending.APOLOGISED, cause, why)
    return _end(tx, way, end)


def _end(tx: Tx, way: Way, end: Close) -> Next:
    end_run(tx, way.rt, way.run, end)
    return Ended(end.ending)


async def deliver(ctx: WorkerContext, run: Run, to: Recipient, first: Send | None) -> None:
    """Send what is missing of a run whose parts are stored. `first` is a part that is marked
    as being sent already. Returns when the run ended or was given back; raises StaleLease
    when it was lost; then the outcome of a call that was under way is recorded by its owner."""
    limiter = ctx.limiters[run.account]
    step: Next = first or await _advance(ctx, run, to, place=await limiter.place(to))
    while True:
        match step:
            case Send(part, address, more):
                to = replace(to, address=address)
                async with ctx.sends.call(ctx.rt.channels[run.account], to, part) as outcome:
                    result = Result(Attempt(part.id, part.attempts), outcome)
                    place = await limiter.place(to) if more else None
                    step = await _advance(ctx, run, to, result, place)
            case Stand.NEEDS_PLACE:
                patience = ctx.rt.retry.short_wait
                place = await limiter.place(to, patience, returned=run.attempts > 1)
                if not place.taken:
                    await ctx.persist(give_back, run, place.wait, "the platform's rate limit")
                    return
                step = await _advance(ctx, run, to, place=place)
            case Look() | InCall() | Pause():
                found = await _outside(ctx, to, step)
                step = await _advance(ctx, run, to, found, await limiter.place(to))
            case Stand.LOST:
                raise StaleLease(f"run {run.id} was taken over")
            case Ended() | Stand.GAVE_BACK:
                return
            case other:
                assert_never(other)


async def _outside(ctx: WorkerContext, to: Recipient, step: Look | InCall | Pause) -> Result | None:
    """Ask or wait before the rows are read again."""
    match step:
        case Look():
            return await look_up(ctx.rt, step, to)
        case InCall(part):
            await ctx.sends.over(part, _CALL_CHECKED)
        case Pause(seconds, int() as awaited):
            if not await ctx.rt.wakeups.wait(part_topic(awaited), seconds):
                await ask(ctx.rt, awaited)
        case Pause(seconds):
            await ctx.rt.clock.sleep(seconds)
        case other:
            assert_never(other)
    return None


async def _advance(
    ctx: WorkerContext,
    run: Run,
    to: Recipient,
    result: Result | None = None,
    place: Place | None = None,
) -> Next:
    """One commit of delivery, with the hints and checkpoints that follow from it. A place that
    it does not use is given back."""
    rt = ctx.rt
    step: Next = Stand.LOST
    try:
        ctx.lease.holder()
        calling = ctx.sends.calling - {result.attempt.part if result else 0}
        placed = place is not None and place.taken
        way = Way(rt, run, to, placed, calling)
        step, doubled = await ctx.persist(advance, way, result)
    finally:
        if place is not None and not isinstance(step, Send):
            place.refund()
    if result is not None:
        alarm(rt, result.attempt.part, doubled=doubled)
        goes_on = isinstance(step, Send | Pause) or step is Stand.NEEDS_PLACE
        if isinstance(result.outcome, Sent) and goes_on:
            await rt.reached(Checkpoint.PART_RECORDED)
    if isinstance(step, Ended):
        ctx.ended(run, step.ending)
        await rt.reached(Checkpoint.SETTLED)
    return step


async def look_up(rt: Runtime, look: Look, to: Recipient) -> Result:
    """Ask the provider whether the part arrived."""
    part = look.part
    ref = SendRef(part.id, part.attempts, part.started_at)
    found: Sent | Lookup = Lookup.NOT_FOUND
    for address in look.addresses:
        at = replace(to, address=address)
        seen = await rt.channels[part.account].look_up(at, part.body, ref, look.owned)
        if isinstance(seen, Sent):
            found = seen
            break
        found = seen if seen is Lookup.CANNOT_TELL else found
    return Result(Attempt(part.id, part.attempts, part.looks), found)
