"""The end of a run, and all that is part of its transaction: pending parts are dropped, the notice
that is owed is posted, the chat is handed over if its agent asked for a person, and the chat's next
run is promoted."""

from __future__ import annotations

from typing import assert_never

from bot.delivery import notices, window
from bot.domain.decisions.handoff import hands_over
from bot.domain.decisions.verdict import UncertainDelivery
from bot.domain.ending import Cause, Close, Ending, Note
from bot.domain.run import Run
from bot.leases.runtime import Runtime
from bot.texts import Text
from storage import audit_log, chats, outbox, runs
from storage.outbox import Notice
from storage.statements.tx import Tx

_TOLD_AGAIN_AFTER = 86_400.0
"""Seconds for which a chat is told only once that an answer came too late."""
_WORKER = "worker"
_AGENT = "agent"


def end_run(tx: Tx, rt: Runtime, run: Run, end: Close) -> bool:
    """running -> ended, under the run's claim; returns whether something may be due now.

    The chat is locked. Raises StaleLease when the run was lost.
    """
    runs.settle(tx, run.claim, end)
    return after_end(tx, rt, run, end, _WORKER)


def give_back(tx: Tx, run: Run, seconds: float, why: str) -> None:
    """running -> ready, due in `seconds`. Raises StaleLease."""
    chats.lock(tx, run.chat)
    runs.give_back(tx, run.claim, seconds, why)


def after_end(tx: Tx, rt: Runtime, run: Run, end: Close, who: str) -> bool:
    """Do what follows from the end of a run, whoever ended it. Returns whether something may be due
    now: a notice, or the chat's next run. The chat is locked."""
    outbox.drop_pending(tx, run.id)
    _post_owed(tx, rt, run, end)
    handed_over = run.handoff is not None and hands_over(end)
    if handed_over:
        _hand_over(tx, rt, run)
    if who != _WORKER or end.ending is not Ending.ANSWERED:  # the run's row says all of that
        audit_log.note(tx, who, f"ended {end.ending.value}", end.words, run=run.id, chat=run.chat)
    promoted = runs.promote(tx, run.chat) is not None
    return promoted or handed_over or end.ending.rule.note is not None


def _hand_over(tx: Tx, rt: Runtime, run: Run) -> None:
    """Give the chat to a person, and say so in it."""
    chat = chats.get(tx, run.chat)
    chats.hand_over(tx, chat.id, run.id)
    audit_log.note(tx, _AGENT, "asked for a person", chat=chat.id)
    if run.account in rt.channels:
        said = notices.plain(rt, chat, Text.HANDED_OVER)
        notices.say(tx, rt, chat, said, run=run.id, notice=Notice.HANDED_OVER)


def _post_owed(tx: Tx, rt: Runtime, run: Run, end: Close) -> None:
    """Post the one notice that an ending owes the person, if any."""
    note = end.ending.rule.note
    if note is None or run.account not in rt.channels:
        return
    chat = chats.get(tx, run.chat)
    match note:
        case Note.UNCERTAIN:
            if rt.terms.policy.uncertain is UncertainDelivery.ASK:
                asked = notices.uncertain(rt, chat, run.id)
                notices.say(tx, rt, chat, asked, run=run.id, notice=Notice.UNCERTAIN)
        case Note.TOO_OLD:
            if not chat.unreachable_reason and chats.tell_once(
                tx, chat.id, note.value, _TOLD_AGAIN_AFTER
            ):
                said = notices.plain(rt, chat, Text.TOO_OLD)
                notices.say(tx, rt, chat, said, run=run.id, notice=Notice.TOO_OLD)
        case Note.INVITATION:
            if end.cause is Cause.WINDOW_CLOSED:
                window.invite(tx, rt, chat)
        case other:
            assert_never(other)
