"""One turn of a claimed run: judge it, call the agent if the verdict allows, store the reply,
deliver it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from bot.delivery import choices, notices
from bot.delivery.advance import Send
from bot.delivery.clearance import may_begin
from bot.delivery.context import Shared, WorkerContext
from bot.delivery.deliver import deliver
from bot.delivery.finish import end_run
from bot.domain.decisions.handoff import hands_over
from bot.domain.decisions.verdict import (
    Answer,
    Apologise,
    Deliver,
    Failed,
    GaveUp,
    Later,
    OutOfTime,
    PutBack,
    Think,
    Thought,
    follows,
    judge,
)
from bot.domain.delivery import PartState
from bot.domain.ending import Cause, Close
from bot.domain.errors import AgentFailed, AnswerbackError, GiveUp, Retry, StaleLease
from bot.domain.message import clean
from bot.domain.reply import PartBody, PartKind, Reply
from bot.domain.run import Run
from bot.domain.steps import shows_a_step
from bot.leases.checkpoints import Checkpoint
from bot.leases.runtime import Runtime
from bot.observability.faults import Fault
from bot.runs.turn_context import TurnContext
from bot.runs.typing import WorkSigns
from bot.texts import Text
from storage import audit_log, chats, outbox, runs
from storage.chats import Chat
from storage.engine.lane import LeftOut
from storage.notify import READY
from storage.outbox import NewParts, Notice, Part, PartOwner
from storage.statements import clock
from storage.statements.tx import Tx
from storage.views.evidence import Case, address_now

_log = logging.getLogger("answerback.turn")


async def prepare(ctx: WorkerContext, case: Case) -> TurnContext:
    """Read what the agent will need, before the run has a place. Raises DatabaseUnavailable."""
    turn = TurnContext(ctx, case)
    if ctx.reads_history and not case.run.replied:
        await turn.read_history()
    return turn


async def work(ctx: WorkerContext, signs: WorkSigns, case: Case, turn: TurnContext) -> None:
    """Take a claimed run as far as possible: to its end, or until it is given back. Raises
    StaleLease when it was taken over."""
    rt, run = ctx.rt, case.run
    await rt.reached(Checkpoint.CLAIMED)
    _must_hold(ctx, run)
    match judge(case.evidence, rt.policy(run.account)):
        case Close() as end:
            await _close(ctx, run, end)
        case Deliver():
            await deliver(ctx, run, case.recipient, None)
        case Apologise() as owed:
            await _apologise(ctx, case, owed)
        case Think():
            await _think(ctx, signs, case, turn)
        case other:
            assert_never(other)


def _must_hold(ctx: WorkerContext, run: Run) -> None:
    """Check that the session that claimed this run still holds its lease. Raises StaleLease."""
    if ctx.lease.holder() != run.holder:
        raise StaleLease(f"run {run.id} was claimed in an earlier session of this process")


async def _close(ctx: WorkerContext, run: Run, end: Close) -> None:
    ready = await ctx.persist(_end, ctx.rt, run, end)
    ctx.ended(run, end.ending, ready=ready)
    if run.handoff is not None and hands_over(end):
        _tell_handoff(ctx, run)
    await ctx.rt.reached(Checkpoint.SETTLED)


def _end(tx: Tx, rt: Runtime, run: Run, end: Close) -> bool:
    chats.lock(tx, run.chat)
    if run.handoff is not None:
        runs.hand_over(tx, run.claim, run.handoff)
    return end_run(tx, rt, run, end)


async def _think(ctx: WorkerContext, signs: WorkSigns, case: Case, turn: TurnContext) -> None:
    rt, run = ctx.rt, case.run
    began = rt.clock.monotonic()
    signs.begin(case)
    try:
        thought = await _ask(ctx, case, turn)
    finally:
        ctx.places.agent_done(run)
        await signs.end(run.id)
    taken = rt.clock.monotonic() - began
    rt.observer.agent_seconds.labels(type(thought).__name__.lower()).observe(taken)
    await rt.reached(Checkpoint.AGENT_RETURNED)
    _must_hold(ctx, run)
    now = case.evidence.now + taken
    case = replace(case, run=replace(run, handoff=turn.handoff))
    match follows(thought, case.run, rt.retry, rt.clock.jitter(), now):
        case Close() as end:
            await _close(ctx, case.run, end)
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


async def _ask(ctx: WorkerContext, case: Case, turn: TurnContext) -> Thought:
    """Call the agent within the time that is left. Whatever it does is returned as a value."""
    limit = asyncio.timeout(max(0.0, turn.deadline - case.evidence.now))
    try:
        async with limit:
            answer = await ctx.agent(turn)
    except TimeoutError as error:
        if limit.expired():
            return OutOfTime()
        return _failed(case, turn, error)
    except Retry as error:
        return Later(error.after, clean(str(error)))
    except GiveUp as error:
        return GaveUp(clean(error.text), clean(error.reason))
    except StaleLease:
        raise
    except Exception as error:  # noqa: BLE001 - the agent's edge: anything else is a failure
        return _failed(case, turn, error)
    reply = Reply(answer) if isinstance(answer, str) else answer
    if said := turn.forgotten.told():
        if reply is not None and shows_a_step(reply.text):
            return _failed(case, turn, AgentFailed(said))
        _log.warning("run %s: %s", case.run.id, said)
    return Answer(None if reply is None or reply.silent else reply)


def _failed(case: Case, turn: TurnContext, error: Exception) -> Failed:
    """Log a failure of the agent and return it as operators will read it. Of the exception's words
    only those are kept that do not quote the chat."""
    fault = Fault(error, turn.spoken)
    _log.warning("run %s: the agent failed", case.run.id, extra={"fault": fault})
    if isinstance(error, AnswerbackError):
        return Failed(clean(f"{type(error).__name__}: {error}"))
    return Failed(clean(str(fault)))


def _tell_handoff(ctx: WorkerContext, run: Run) -> None:
    """Count and log that the agent asked for a person. The reason is left out: it may quote the
    chat."""
    ctx.rt.observer.handoffs.inc()
    _log.info("run %s: the agent asked for a person", run.id)


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
    answer = NewAnswer(rt, case, PartKind.REPLY, bodies, reply=reply)
    first = await _store(ctx, answer)
    if case.run.handoff is not None:
        _tell_handoff(ctx, case.run)
    await rt.reached(Checkpoint.REPLY_STORED)
    await deliver(ctx, case.run, to, first)


async def _apologise(ctx: WorkerContext, case: Case, owed: Apologise) -> None:
    rt, to = ctx.rt, case.recipient
    usual = Text.APOLOGY_DEADLINE if owed.cause is Cause.DEADLINE else Text.APOLOGY
    text = owed.text or rt.words.say(usual, case.chat.language)
    bodies = notices.apology(rt, case.run.account, to, case.run.id, text)
    first = await _store(ctx, NewAnswer(rt, case, PartKind.APOLOGY, bodies, owed=owed))
    await rt.reached(Checkpoint.APOLOGY_STORED)
    await deliver(ctx, case.run, to, first)


@dataclass(frozen=True, slots=True, eq=False)
class NewAnswer:
    """A reply, or an apology with what is `owed`, as it is stored before anything is sent.
    `may_send`: the rate limits let its first part leave now."""

    rt: Runtime
    case: Case
    kind: PartKind
    parts: Sequence[PartBody]
    reply: Reply | None = None
    owed: Apologise | None = None
    may_send: bool = False

    @property
    def run(self) -> Run:
        """The run that it answers."""
        return self.case.run

    def outgoing(self, chat: Chat, now: float) -> NewParts:
        """Its parts as they are inserted: the first is `sending` at once if nothing delays it."""
        free = self.may_send and may_begin(self.rt, chat, now)
        to = PartOwner(self.run.account, chat.id, self.run.id)
        first_by = self.run.claim.holder if free else None
        reply = None if self.reply is None else clean(self.reply.text)
        return NewParts(to, self.kind, self.parts, first_by, reply)

    def outlasted(self, now: float) -> bool:
        """Tell whether the person may have been sent the notice that the answer takes longer."""
        waited = now - self.run.created_at >= self.rt.terms.work.still_working_after
        return waited or self.run.attempts > 1


async def _store(ctx: WorkerContext, answer: NewAnswer) -> Send | None:
    """Commit the answer and its parts. Returns the first part if it is `sending` already."""
    permit = await ctx.limiters[answer.run.account].permit(answer.case.recipient)
    first: Send | None = None
    try:
        first = await ctx.share(STORE, replace(answer, may_send=permit.taken))
    finally:
        if first is None:
            permit.refund()
    return first


def _store_one(tx: Tx, answer: NewAnswer) -> Send | None:
    chat = chats.lock(tx, answer.run.chat)
    [told] = _store_in(tx, {answer: chat}, clock.read(tx)).values()
    if isinstance(told, StaleLease):
        raise told
    return told


def _store_each(
    tx: Tx, answers: Sequence[NewAnswer]
) -> Sequence[Send | StaleLease | LeftOut | None]:
    locked, now = chats.lock_each(tx, [one.run.chat for one in answers])
    told = _store_in(tx, {a: locked[a.run.chat] for a in answers if a.run.chat in locked}, now)
    return [told.get(answer, LeftOut.LOCKED) for answer in answers]


def _store_in(
    tx: Tx, to: Mapping[NewAnswer, Chat], now: float
) -> Mapping[NewAnswer, Send | StaleLease | None]:
    """Store answers in their chats, which are locked. A run that was taken over gets StaleLease
    instead, and nothing of it is stored."""
    marked = runs.mark_replied_each(tx, [one.run.claim for one in to])
    held = [one for one in to if one.run.id in marked]
    late = [one.run.id for one in held if one.outlasted(now)]
    outbox.drop_notice_each(tx, late, Notice.STILL_WORKING)
    for one in held:
        if one.owed is None:
            choices.offer(tx, one.rt, to[one], one.parts)
        else:
            runs.explain(tx, one.run.claim, one.owed.cause, one.owed.words)
        if one.run.handoff is not None:
            runs.hand_over(tx, one.run.claim, one.run.handoff)
    parts = outbox.store_parts_each(tx, [one.outgoing(to[one], now) for one in held])
    lost = "was taken over before its answer was stored"
    return {
        one: _first(tx, one, chat, parts[one.run.id])
        if one.run.id in parts
        else StaleLease(f"run {one.run.id} {lost}")
        for one, chat in to.items()
    }


def _first(tx: Tx, answer: NewAnswer, chat: Chat, parts: Sequence[Part]) -> Send | None:
    """The act that sends the first part, if it is marked for that."""
    begun = bool(parts) and parts[0].state is PartState.SENDING
    if not begun:
        return None
    return Send(parts[0], address_now(tx, answer.case.recipient, chat), len(parts) > 1)


STORE = Shared(_store_each, _store_one, lambda answer: answer.run.chat)
