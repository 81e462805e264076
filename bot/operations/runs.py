"""Acts on runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from bot.delivery import notices
from bot.delivery.finish import after_end
from bot.domain.delivery import ARRIVED, PartState
from bot.domain.ending import Cause, Close, Ending
from bot.domain.reply import PartKind
from bot.domain.run import Run, RunState
from bot.leases import recovery
from bot.leases.runtime import Runtime
from bot.operations.actions import NOT_CONFIGURED, Acted, Operator, Subject
from bot.operations.chats import cannot_write
from bot.operations.parts import too_old
from bot.operations.reports.phrases import counted
from bot.runs.create import again
from bot.texts import Text
from storage import audit_log, chats, holders, inbox, outbox, runs
from storage.chats import Chat
from storage.notify import READY, chat_topic, stop_topic
from storage.outbox import PartOwner
from storage.statements import clock
from storage.statements.tx import Tx
from storage.views.evidence import Case, gather_one


@dataclass(frozen=True, slots=True)
class _Locked(Subject):
    """A run under its chat's lock."""

    run: Run
    chat: Chat

    def note(self, tx: Tx, by: Operator, what: str, otherwise: str) -> None:
        audit_log.note(tx, by.name, what, by.because(otherwise), run=self.run.id, chat=self.chat.id)


def _locked(tx: Tx, run: int) -> _Locked:
    """The run as it is once its chat is locked. The run exists."""
    found = runs.find(tx, run)
    assert found is not None
    chat = chats.lock(tx, found.chat)
    locked = runs.find(tx, run, lock=True)
    assert locked is not None
    return _Locked(f"run {run}", locked, chat)


def requeue(tx: Tx, rt: Runtime, by: Operator, run: int, *, may_duplicate: bool = False) -> Acted:
    """Let a run be worked on again, in the way that its state allows: take it from a dead
    holder, end its waiting, send what is stored, or make a new run for its messages."""
    # Before the chat is locked: holders are locked first everywhere.
    holders.mark_overdue_dead(tx, rt.terms.work.lease.seconds)
    s = _locked(tx, run)
    match s.run.state:
        case RunState.RUNNING:
            return _release(tx, by, s)
        case RunState.READY | RunState.WAITING:
            return _make_due(tx, by, s)
        case RunState.ENDED:
            return _requeue_ended(tx, rt, by, s, may_duplicate=may_duplicate)
        case other:
            assert_never(other)


def _release(tx: Tx, by: Operator, s: _Locked) -> Acted:
    recovery.release_chat(tx, s.chat.id, by.name)
    now = runs.find(tx, s.run.id)
    if now is None or now.state is RunState.RUNNING:
        return s.refused("a live process works on it; `runs close` would end it")
    s.note(tx, by, "requeued", "its holder is dead")
    return s.done("taken from its dead holder and ready", READY)


def _make_due(tx: Tx, by: Operator, s: _Locked) -> Acted:
    if s.chat.paused(clock.read(tx)):
        return s.refused("its chat is paused: `chats resume` answers what waits")
    aside = runs.set_aside_reason(tx, s.run.id)
    if not runs.make_due(tx, s.run.id):
        what = "behind another run of its chat" if s.run.state is RunState.WAITING else "and due"
        return s.too_late(f"it is {s.run.state.value} {what} already")
    s.note(tx, by, "requeued", "it was put off" if not aside else "it was set aside")
    return s.done("due at once", READY)


def _requeue_ended(tx: Tx, rt: Runtime, by: Operator, s: _Locked, *, may_duplicate: bool) -> Acted:
    """A run that ended: send what is stored and did not arrive, or have it worked on anew."""
    assert s.run.ending is not None
    if said := s.run.ending.rule.not_requeued:
        return s.refused(said)
    if not s.run.messages:
        return s.refused("the words of its messages were deleted")
    if not inbox.of_run(tx, s.run.id):
        return s.too_late("its messages belong to a later run by now")
    if closed := cannot_write(tx, rt, s.chat):
        return s.refused(closed)
    if _answered_by_hand(gather_one(tx, s.run)) and not may_duplicate:
        return s.refused("somebody answered by hand after its last message; --may-duplicate sends")
    if outbox.reply(tx, s.run.id) is not None:
        return _resend_missing(tx, rt, by, s, may_duplicate=may_duplicate)
    new = again(tx, s.chat, s.run, by.name)
    s.note(tx, by, "requeued", f"as run {new.id}")
    return s.done(f"its messages are run {new.id} now", chat_topic(s.chat.id), READY)


def _resend_missing(tx: Tx, rt: Runtime, by: Operator, s: _Locked, *, may_duplicate: bool) -> Acted:
    """The answer is stored: the agent is not asked again, and what arrived is not sent again."""
    parts = [p for p in outbox.of_run_any(tx, s.run.id) if p.kind is PartKind.REPLY]
    if any(p.state in (PartState.PENDING, PartState.SENDING) for p in parts):
        return s.too_late("its answer is on its way already")
    missing = [p for p in parts if p.state not in ARRIVED and p.replaced_by is None]
    doubtful = [p.id for p in missing if p.state is PartState.UNCERTAIN]
    if not missing:
        return s.refused("every part of its answer arrived")
    if doubtful and not may_duplicate:
        return s.refused(
            f"part {doubtful[0]} may have arrived: look at the chat, then "
            "`outbox resolve` it, or send it once more with --may-duplicate"
        )
    if too_old(tx, rt, missing):
        return s.refused("its answer is older than ANSWER_MAX_AGE; use `chats reply`")
    for part in missing:
        outbox.resend(tx, part.id, part.attempts, standalone=True)
    if s.run.ending is not None and s.run.ending.stopped:
        after = Close(Ending.UNCERTAIN, Cause.OPERATOR, "sent after all by an operator")
        runs.correct_ending(tx, s.run.id, s.run.ending, after)
    risk = ", although it may have arrived" if doubtful else ""
    s.note(tx, by, "requeued", f"{len(missing)} parts are sent once more{risk}")
    return s.done(f"to be sent once more: {counted(len(missing), 'stored part')}{risk}", READY)


def close(tx: Tx, rt: Runtime, by: Operator, run: int, wanted: Ending) -> Acted:
    """End a run by hand, in a way that is `ByHand`: nothing of it is sent any more, and the chat's
    next one begins."""
    s = _locked(tx, run)
    if wanted is Ending.ANSWERED and not _shown_answered(tx, s.run) and not by.reason:
        return s.refused("nothing shows that it was answered: say how you know with --reason")
    end = Close(wanted, Cause.OPERATOR, by.signed(wanted.value))
    if s.run.ending is not None:
        return _correct_ending(tx, by, s, end)
    on_its_way = [p for p in outbox.of_run(tx, run) if p.state is PartState.SENDING]
    if not runs.end_live(tx, run, end, fence=s.run.fence):
        return s.too_late("it moved on while you looked")
    after_end(tx, rt, s.run, replace(end, detail=by.because("closed by hand")), by.name)
    late = f"; part {on_its_way[0].id} was being sent and may still arrive" if on_its_way else ""
    return s.done(f"{wanted.value}{late}", stop_topic(run), chat_topic(s.chat.id), READY)


def _shown_answered(tx: Tx, run: Run) -> bool:
    case = gather_one(tx, run)
    evidence = case.evidence
    arrived = bool(evidence.parts) and all(p.state in ARRIVED for p in evidence.parts)
    return _answered_by_hand(case) or (evidence.reply_stored and arrived)


def _answered_by_hand(case: Case) -> bool:
    """Tell whether somebody answered after the run's last message, as the bot or otherwise."""
    written = max((message.at for message in case.messages), default=None)
    return case.evidence.human_answered or case.chat.answered(written)


def _correct_ending(tx: Tx, by: Operator, s: _Locked, after: Close) -> Acted:
    before, wanted = s.run.ending, after.ending
    assert before is not None
    if not before.correctable_to(wanted):
        return s.too_late(f"it ended as {before.value}")
    if not runs.correct_ending(tx, s.run.id, before, after):
        return s.too_late("it moved on while you looked")
    s.note(tx, by, f"{before.value} became {wanted.value}", "closed by hand")
    return s.done(f"{wanted.value}, was {before.value}")


def apologise(tx: Tx, rt: Runtime, by: Operator, run: int) -> Acted:
    """Give a run up and say so once: whoever takes it up next sends the apology and ends it."""
    s = _locked(tx, run)
    if s.run.state is RunState.ENDED:
        assert s.run.ending is not None
        return s.too_late(f"it ended as {s.run.ending.value}; to write use `chats reply`")
    if s.run.account not in rt.channels:
        return s.refused(NOT_CONFIGURED)
    if closed := cannot_write(tx, rt, s.chat):
        return s.refused(closed)
    if not runs.owe_apology(tx, run, by.signed("given up")):
        return s.too_late("its answer or an apology is stored and will be sent")
    to = gather_one(tx, s.run).recipient
    text = rt.words.say(Text.APOLOGY, s.chat.language)
    bodies = notices.apology(rt, s.run.account, to, run, text)
    place = PartOwner(s.run.account, s.chat.id, run)
    outbox.store_parts(tx, place, PartKind.APOLOGY, bodies)
    s.note(tx, by, "apology asked for", "given up by hand")
    return s.done("the apology goes out when its turn comes", stop_topic(run), READY)
