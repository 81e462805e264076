"""Sending the stored parts of a run, and writing down what became of each.

Everything that the database must know between two calls to a provider is one transaction,
`advance`: it writes what the last call told us, decides what comes next, and commits that
decision before anything leaves. A reply of n parts so costs n commits after it is stored,
the last of which ends the run and promotes the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from bot.delivery import window
from bot.delivery.context import WorkerContext
from bot.delivery.finish import end_run
from bot.delivery.outcome import alarm, reconsider, record
from bot.delivery.status import ask
from bot.domain.delivery import ChannelDown, Lookup, Outcome, Sent
from bot.domain.ending import Cause, Close, Ending
from bot.domain.errors import StaleLease
from bot.domain.message import Address
from bot.domain.ports import Recipient, SendRef
from bot.domain.reply import PartKind
from bot.domain.run import Run
from bot.domain.verdict import (
    Doubt,
    LookUp,
    Resend,
    SendPart,
    Wait,
    plan,
)
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
_CALL_GOES_ON = 0.2
"""Seconds until a call that an earlier turn here began is asked about again."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the last call to the provider said about one attempt."""

    attempt: Attempt
    outcome: Outcome | Lookup


@dataclass(frozen=True, slots=True)
class Send:
    """This part is `sending` now, committed: call the provider, at the chat's address."""

    part: Part
    address: Address


@dataclass(frozen=True, slots=True)
class Look:
    """Ask the provider about this uncertain part."""

    part: Part
    owned: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing may be done for `seconds`, or until `awaited` (a part) is reported on."""

    seconds: float
    awaited: int | None = None


@dataclass(frozen=True, slots=True)
class GaveBack:
    """The run is ready again, due later: somebody goes on with it then."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The run is somebody else's: stop quietly."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The run is over. `promoted` is the run that is next in its chat."""

    ending: Ending
    promoted: int | None


Next = Send | Look | Pause | GaveBack | Lost | Ended


@dataclass(frozen=True, slots=True)
class Advanced:
    """What comes next; `doubled` says that the person has the part twice that was told of."""

    next: Next
    doubled: bool = False


@dataclass(frozen=True, slots=True)
class Way:
    """What `advance` needs besides the rows. `wait` > 0 while the pace forbids a send;
    `calling` are the parts whose call is under way in this process."""

    rt: Runtime
    run: Run
    to: Recipient
    wait: float
    jitter: float
    calling: frozenset[int]


def advance(tx: Tx, way: Way, told: Told | None) -> Advanced:
    """Write what was told, decide what is next, and end the run when nothing is.

    A receipt is written whoever holds the run; everything else moves only under its claim.
    """
    chat = chats.lock(tx, way.run.chat)
    held = _held(tx, way.run)
    doubled = False
    if told is not None:
        doubled = record(tx, way.rt, told.attempt, told.outcome, chat, way.jitter)
        chat = chats.get(tx, chat.id)
        # A move may have merged the chat into an older one, which releases its runs.
        held = held and _held(tx, way.run)
    if not held:
        if told is not None:
            reconsider(tx, way.run.id)
        return Advanced(Lost(), doubled)
    match told:
        case Told(outcome=Lookup.CANNOT_TELL) if not _patience_ends(tx, way, told.attempt):
            step = _give_back(
                tx, way, way.rt.retry.look_again, "the provider's list can't be asked"
            )
        case Told(outcome=ChannelDown()):
            step = _give_back(tx, way, 0.0, "the channel is down")
        case _:
            step = _decide(tx, way, chat)
    return Advanced(step, doubled)


def _patience_ends(tx: Tx, way: Way, attempt: Attempt) -> bool:
    """Whether nobody asks the provider any more about an attempt: then it stays uncertain."""
    part = outbox.get(tx, attempt.part)
    if part is None or clock.read(tx) < part.started_at + way.rt.retry.look_patience:
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
                known = _ours(way, by_id[facts.id], chat)
                if known is not None:
                    return known
                outbox.doubt(tx, Attempt(facts.id, facts.attempts), LOST_IN_SENDING)
            case Resend(facts):
                outbox.resend(tx, facts.id, facts.attempts)
            case LookUp(facts):
                return Look(by_id[facts.id], outbox.owned_receipts(tx, chat.id))
            case Wait(until, why, awaited):
                return _wait(tx, way, until - now, why, awaited)
            case SendPart(facts):
                return _send(tx, way, chat, by_id[facts.id], now)
            case Close() as end:
                return _finish(tx, way, parts, end)
            case other:
                assert_never(other)


def _ours(way: Way, part: Part, chat: Chat) -> Next | None:
    """What to do with a part that this process itself marked as being sent: wait for a call
    that an earlier turn began, or make the call that a lost commit answer kept from being made.
    None: the mark is somebody else's, who is gone."""
    if part.id in way.calling:
        return Pause(_CALL_GOES_ON)
    mine = part.holder == way.run.holder
    return Send(part, address_now(way.to, chat)) if mine else None


def _send(tx: Tx, way: Way, chat: Chat, part: Part, now: float) -> Next:
    """Begin the part, unless the chat's state forbids it just now."""
    if chat.paused_until is not None and chat.paused_until > now:
        return _give_back(tx, way, 0.0, "the chat is paused")
    if chat.not_before > now:
        return _wait(tx, way, chat.not_before - now, "the platform limits this chat", None)
    if chat.silenced is not None:
        return _end(tx, way, chat.silenced)
    closed = way.rt.window_closed(chat.account, chat.last_inbound_at, now)
    if closed and not window.may_leave(tx, way.rt, part):
        return _end(tx, way, Close(Ending.UNDELIVERABLE, Cause.WINDOW_CLOSED))
    if way.wait > 0:
        return _wait(tx, way, way.wait, "the platform's pace", None)
    begun = outbox.mark_sending(tx, way.run.claim, part.id)
    return Lost() if begun is None else Send(begun, address_now(way.to, chat))


def _wait(tx: Tx, way: Way, seconds: float, why: str, awaited: int | None) -> Next:
    """Spend a short wait, or one for a status, in place; give the run back for a long one."""
    if awaited is not None:
        return Pause(min(seconds, way.rt.retry.ask_status_every), awaited)
    if seconds <= way.rt.retry.short_wait:
        return Pause(seconds)
    return _give_back(tx, way, seconds, why)


def _give_back(tx: Tx, way: Way, seconds: float, why: str) -> Next:
    runs.give_back(tx, way.run.claim, seconds, why)
    return GaveBack()


def _finish(tx: Tx, way: Way, parts: Sequence[Part], end: Close) -> Next:
    if any(p.kind is PartKind.APOLOGY for p in parts):
        stored = runs.find(tx, way.run.id)
        end = end if stored is None else _apology_end(end, stored)
    return _end(tx, way, end)


def _apology_end(sent: Close, run: Run) -> Close:
    """The end of a run whose apology ended as `sent`: its cause is what it apologised for."""
    why, cause = run.detail, run.cause or sent.cause
    if sent.ending is Ending.UNDELIVERABLE:
        return Close(Ending.FAILED, cause, f"{why}; the apology was refused: {sent.words}")
    if sent.ending is Ending.UNCERTAIN:
        return Close(Ending.APOLOGISED, cause, f"{why}; the apology may not have arrived")
    return Close(Ending.APOLOGISED, cause, why)


def _end(tx: Tx, way: Way, end: Close) -> Next:
    return Ended(end.ending, end_run(tx, way.rt, way.run, end))


async def deliver(ctx: WorkerContext, run: Run, to: Recipient, first: Send | None) -> None:
    """Send what is missing of a run whose parts are stored. `first` is a part that is marked
    as being sent already. Returns when the run ended or was given back; raises StaleLease
    when it was lost; then the outcome of a call that was under way is written by `Sends`."""
    step: Next = await _advance(ctx, run, to, None) if first is None else first
    while True:
        match step:
            case Send(part, address):
                to = replace(to, address=address)
                async with ctx.sends.call(ctx.rt.channels[run.account], to, part) as outcome:
                    told = Told(Attempt(part.id, part.attempts), outcome)
                    step = await _advance(ctx, run, to, told)
            case Look(part, owned):
                step = await _advance(ctx, run, to, await _look(ctx, run, to, part, owned))
            case Pause(seconds, awaited):
                await _pause(ctx, seconds, awaited)
                step = await _advance(ctx, run, to, None)
            case Lost():
                raise StaleLease(f"run {run.id} was taken over")
            case Ended() | GaveBack():
                return
            case other:
                assert_never(other)


async def _pause(ctx: WorkerContext, seconds: float, awaited: int | None) -> None:
    if awaited is None:
        await ctx.rt.clock.sleep(seconds)
    elif not await ctx.rt.wakeups.wait(part_topic(awaited), seconds):
        await ask(ctx.rt, awaited)


async def _look(
    ctx: WorkerContext, run: Run, to: Recipient, part: Part, owned: frozenset[str]
) -> Told:
    ref = SendRef(part.id, part.attempts, part.started_at)
    found = await ctx.rt.channels[run.account].look_up(to, part.body, ref, owned)
    return Told(Attempt(part.id, part.attempts), found)


async def _advance(ctx: WorkerContext, run: Run, to: Recipient, told: Told | None) -> Next:
    """One commit of delivery, with the hints and checkpoints that follow from it."""
    rt = ctx.rt
    ctx.lease.holder()
    slot = await ctx.pacers[run.account].reserve(to)
    advanced = Advanced(Lost())
    try:
        calling = ctx.sends.calling - {told.attempt.part if told else 0}
        way = Way(rt, run, to, slot.wait, rt.clock.jitter(), calling)
        advanced = await ctx.persist(advance, way, told)
    finally:
        if not isinstance(advanced.next, Send):
            slot.refund()
    step = advanced.next
    if told is not None:
        alarm(rt, told.attempt.part, doubled=advanced.doubled)
    if told is not None and isinstance(told.outcome, Sent) and isinstance(step, Send | Pause):
        await rt.reached(Checkpoint.PART_RECORDED)
    if isinstance(step, Ended):
        ctx.ended(run, step.ending)
        await rt.reached(Checkpoint.SETTLED)
    return step
