"""Ending a run: the one transaction part that settles, drops, says what is owed, promotes."""

from __future__ import annotations

from typing import assert_never

from bot.delivery import notices, window
from bot.domain.ending import Ending
from bot.domain.run import Run
from bot.domain.verdict import WINDOW_CLOSED, UncertainDelivery
from bot.leases.runtime import Runtime
from bot.texts import Text
from storage import audit_log, chats, outbox, runs
from storage.engine.tx import Tx
from storage.outbox import Notice

_TOLD_AGAIN_AFTER = 86_400.0


def end_run(tx: Tx, rt: Runtime, run: Run, ending: Ending, detail: str) -> int | None:
    """running -> ended under the run's claim; returns the run that is ready next in the chat.

    The chat is locked. Raises StaleLease when the run was lost.
    """
    runs.settle(tx, run.claim, ending, detail)
    return after_end(tx, rt, run, ending, detail, who="worker")


def after_end(tx: Tx, rt: Runtime, run: Run, ending: Ending, detail: str, who: str) -> int | None:
    """What every end owes, whoever ended the run: drop what is pending, the note, the next."""
    outbox.drop_pending(tx, run.id)
    _note(tx, rt, run, ending, detail)
    audit_log.note(tx, who, f"ended {ending.value}", detail, run=run.id, chat=run.chat)
    return runs.promote(tx, run.chat)


def _note(tx: Tx, rt: Runtime, run: Run, ending: Ending, detail: str) -> None:
    """The one note that an ending owes the person, if any."""
    if run.account not in rt.channels:
        return
    chat = chats.get(tx, run.chat)
    match ending:
        case Ending.UNCERTAIN:
            if rt.terms.delivery.uncertain is UncertainDelivery.ASK:
                notices.say(
                    tx,
                    rt,
                    chat,
                    notices.uncertain(rt, chat, run.id),
                    run=run.id,
                    notice=Notice.UNCERTAIN,
                )
        case Ending.EXPIRED:
            if not chat.unreachable_reason and chats.tell_once(
                tx, chat.id, "too old", _TOLD_AGAIN_AFTER
            ):
                notices.say(
                    tx,
                    rt,
                    chat,
                    notices.plain(rt, chat, Text.TOO_OLD),
                    run=run.id,
                    notice=Notice.TOO_OLD,
                )
        case Ending.UNDELIVERABLE:
            if detail.startswith(WINDOW_CLOSED):
                window.invite(tx, rt, chat)
        case (
            Ending.ANSWERED
            | Ending.APOLOGISED
            | Ending.FAILED
            | Ending.WITHDRAWN
            | Ending.CANCELLED
            | Ending.SILENT
        ):
            pass
        case other:
            assert_never(other)
