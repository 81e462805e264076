"""One run from claim to end: judge it, think if that is allowed, store the reply, deliver."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import asdict, dataclass
from typing import assert_never

from bot.delivery import choices, notices
from bot.delivery.context import WorkerContext
from bot.delivery.deliver import Send, deliver, door
from bot.delivery.finish import end_run
from bot.domain.agent_result import (
    Answer,
    Failed,
    GaveUp,
    Later,
    OutOfTime,
    PutBack,
    Thought,
    follows,
)
from bot.domain.delivery import PartState
from bot.domain.ending import Cause, Close
from bot.domain.errors import AnswerbackError, GiveUp, Retry, StaleLease
from bot.domain.message import clean
from bot.domain.reply import PartBody, PartKind, Reply
from bot.domain.run import Run
from bot.domain.sendable import Outgoing, sendable
from bot.domain.verdict import Apologise, Deliver, Think, judge
from bot.leases.checkpoints import Checkpoint
from bot.leases.runtime import Runtime
from bot.runs.turn_context import TurnContext
from bot.runs.typing import WorkSigns
from bot.texts import Text
from storage import audit_log, chats, outbox, replies, runs
from storage.engine import clock
from storage.engine.tx import Tx
from storage.notify import READY
from storage.outbox import Notice, PartOwner
from storage.views.evidence import Case, address_now

_log = logging.getLogger("answerback.turn")


async def work(ctx: WorkerContext, signs: WorkSigns, case: Case) -> None:
    """Take a claimed run as far as it goes. Raises StaleLease when it was lost."""
    rt, run = ctx.rt, case.run
    await rt.reached(Checkpoint.CLAIMED)
    _must_hold(ctx, run)
    match judge(case.evidence, rt.policy(run.account)):
        case Close() as end:
            await _close(ctx, run, end)
        case Deliver():
            ctx.limiters[run.account].thought(0.0)
            await deliver(ctx, run, case.recipient, None)
        case Apologise() as owed:
            await _apologise(ctx, case, owed)
        case Think():
            await _think(ctx, signs, case)
        case other:
            assert_never(other)


def _must_hold(ctx: WorkerContext, run: Run) -> None:
    """Raises StaleLease when the session that claimed this run is over."""
    if ctx.lease.holder() != run.holder:
        raise StaleLease(f"run {run.id} was claimed in an earlier session of this process")


async def _close(ctx: WorkerContext, run: Run, end: Close) -> None:
    await ctx.persist(_end, ctx.rt, run, end)
    ctx.ended(run, end.ending)
    await ctx.rt.reached(Checkpoint.SETTLED)


def _end(tx: Tx, rt: Runtime, run: Run, end: Close) -> None:
    chats.lock(tx, run.chat)
    end_run(tx, rt, run, end)


async def _think(ctx: WorkerContext, signs: WorkSigns, case: Case) -> None:
    rt, run = ctx.rt, case.run
    began = rt.clock.monotonic()
    signs.begin(case)
    try:
        thought = await _ask(ctx, case)
    finally:
        await signs.end(run.id)
    taken = rt.clock.monotonic() - began
    ctx.limiters[run.account].thought(taken)
    rt.observer.agent_seconds.labels(type(thought).__name__.lower()).observe(taken)
    await rt.reached(Checkpoint.AGENT_RETURNED)
    _must_hold(ctx, run)
    match follows(thought, run, rt.retry, rt.clock.jitter()):
        case Close() as end:
            await _close(ctx, run, end)
        case Reply() as reply:
            await _reply(ctx, case, reply)
        case Apologise() as owed:
            await _apologise(ctx, case, owed)
        case PutBack() as back:
            await ctx.persist(_put_back, run, back)
            await rt.reached(Checkpoint.GIVEN_BACK)
            if back.wait <= 0:
                rt.wakeups.tell(READY)
        case other:
            assert_never(other)


async def _ask(ctx: WorkerContext, case: Case) -> Thought:
    """Call the agent within the time that is left; whatever it does becomes a value."""
    turn = TurnContext(ctx, case)
    if ctx.reads_history:
        await turn.read_history()
    limit = asyncio.timeout(max(0.0, turn.deadline - case.evidence.now))
    try:
        async with limit:
            answer = await ctx.agent(turn)
    except TimeoutError as error:
        return OutOfTime() if limit.expired() else Failed(_describe(error))
    except Retry as error:
        return Later(error.after, clean(str(error)))
    except GiveUp as error:
        return GaveUp(clean(error.text), clean(error.reason))
    except StaleLease:
        raise
    except Exception as error:  # noqa: BLE001 - the agent's edge: anything else is a failure
        _log.warning("run %s: the agent failed", case.run.id, exc_info=error)
        return Failed(_describe(error))
    reply = Reply(answer) if isinstance(answer, str) else answer
    return Answer(None if reply is None or reply.silent else reply)


def _describe(error: Exception) -> str:
    """An error for operators. Only our own errors' words are kept: others may quote a chat."""
    if isinstance(error, AnswerbackError):
        return clean(f"{type(error).__name__}: {error}")
    return type(error).__name__


def _put_back(tx: Tx, run: Run, back: PutBack) -> None:
    wait = back.wait
    if run.deadline_at is not None:
        wait = min(wait, max(0.0, run.deadline_at - clock.read(tx)))
    chats.lock(tx, run.chat)
    if back.failed:
        runs.fail(tx, run.claim, wait, back.reason)
    else:
        runs.retry_later(tx, run.claim, wait, back.reason)
    did = "failed" if back.failed else "put off"
    audit_log.note(tx, "worker", did, back.reason, run=run.id, chat=run.chat)


async def _reply(ctx: WorkerContext, case: Case, reply: Reply) -> None:
    rt, to = ctx.rt, case.recipient
    channel = rt.channels[case.run.account]
    bodies = channel.compose(reply, to)
    if not bodies:
        reply = Reply(rt.words.say(Text.EMPTY_ANSWER, to.language))
        bodies = channel.compose(reply, to)
    stored = _Stored(PartKind.REPLY, tuple(bodies), clean(reply.text), json.dumps(asdict(reply)))
    first = await _store(ctx, case, stored)
    await rt.reached(Checkpoint.REPLY_STORED)
    await deliver(ctx, case.run, to, first)


async def _apologise(ctx: WorkerContext, case: Case, owed: Apologise) -> None:
    rt, to = ctx.rt, case.recipient
    usual = Text.APOLOGY_DEADLINE if owed.cause is Cause.DEADLINE else Text.APOLOGY
    text = owed.text or rt.words.say(usual, case.chat.language)
    bodies = notices.apology(rt, case.run.account, to, case.run.id, text)
    first = await _store(ctx, case, _Stored(PartKind.APOLOGY, tuple(bodies), owed=owed))
    await rt.reached(Checkpoint.APOLOGY_STORED)
    await deliver(ctx, case.run, to, first)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A reply or an apology as it is stored before anything is sent. `body` is the reply's
    JSON, `owed` what an apology is for."""

    kind: PartKind
    parts: tuple[PartBody, ...]
    text: str = ""
    body: str = ""
    owed: Apologise | None = None


async def _store(ctx: WorkerContext, case: Case, stored: _Stored) -> Send | None:
    """Commit the reply and its parts; the first one already `sending` if nothing delays it."""
    place = await ctx.limiters[case.run.account].place(case.recipient)
    first: Send | None = None
    try:
        first = await ctx.persist(_store_parts, ctx.rt, case, stored, may_send=place.taken)
    finally:
        if first is None:
            place.refund()
    return first


def _store_parts(
    tx: Tx, rt: Runtime, case: Case, stored: _Stored, *, may_send: bool
) -> Send | None:
    run = case.run
    chat = chats.lock(tx, run.chat)
    runs.mark_replied(tx, run.claim)
    outbox.drop_notice(tx, run.id, Notice.STILL_WORKING)  # One that was held back is late.
    if stored.owed is None:
        replies.store(tx, run.id, stored.text, stored.body, run.attempts)
        choices.offer(tx, rt, chat, stored.parts)
    else:
        runs.explain(tx, run.claim, stored.owed.cause, stored.owed.words)
    now = clock.read(tx)
    max_age = rt.terms.policy.answer_max_age
    free = may_send and not sendable(Outgoing(standalone=False), door(rt, chat, now), now, max_age)
    to = PartOwner(run.account, chat.id, run.id)
    first_by = run.claim.holder if free else None
    parts = outbox.store_parts(tx, to, stored.kind, stored.parts, first_by)
    begun = bool(parts) and parts[0].state is PartState.SENDING
    return Send(parts[0], address_now(case.recipient, chat), len(parts) > 1) if begun else None
