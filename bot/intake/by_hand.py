"""Answers by hand, which our own people write to a chat with a device of their own."""

from __future__ import annotations

from bot.delivery.finish import after_end
from bot.domain.delivery import MAY_BE_SHOWN
from bot.domain.ending import Cause, Close, Ending
from bot.domain.message import AnsweredByHand
from bot.domain.run import Run
from bot.leases.runtime import Runtime
from storage import audit_log, chats, inbox, outbox, runs
from storage.chats import Chat
from storage.outbox import PartOwner
from storage.statements import clock
from storage.statements.tx import Tx

HUMAN = "person"
_AHEAD = 60.0
"""Seconds by which a platform's clock may be ahead of ours."""
_END = Close(Ending.ANSWERED, Cause.HUMAN_ANSWERED)


def record_answer(
    tx: Tx, rt: Runtime, chat: Chat, said: AnsweredByHand
) -> tuple[bool, tuple[int, ...]]:
    """Store the words as an operator's, and end the runs that they answer: those whose messages
    were all written before, unless a run's own answer has begun to leave. The chat is locked.
    Returns whether the words are new, and the runs that ended."""
    if outbox.by_receipt(tx, chat.account, said.provider_id) is not None:
        return False, ()
    at = min(said.at, clock.read(tx) + _AHEAD)
    chats.answered(tx, chat.id, at)
    live = runs.live_in_chat(tx, chat.id)
    ended = tuple(run.id for run in live if end_answered(tx, rt, run, at))
    to = PartOwner(chat.account, chat.id, None)
    outbox.post_sent(tx, to, said.text, said.provider_id, at)
    audit_log.note(tx, HUMAN, "answered with a device of their own", chat=chat.id)
    return True, ended


def answered_before(tx: Tx, chat: Chat, written_at: float | None) -> float | None:
    """The provider's time of the last answer by device, if this message, which came late, was
    written before it; else None. That an operator marked the chat as answered does not count: they
    had not seen the message, and the time of that is our clock's."""
    if written_at is None or not chat.answered(written_at):
        return None
    at = outbox.by_device_at(tx, chat.id)
    return at if at is not None and written_at < at else None


def end_answered(tx: Tx, rt: Runtime, run: Run, at: float) -> bool:
    """End a run because one of our own people answered at `at` (epoch seconds). False: not all of
    its messages were written by then, or its own answer has begun to leave. The chat is locked."""
    messages = inbox.of_run(tx, run.id)
    if not messages or max(message.at for message in messages) > at:
        return False
    if any(part.state in MAY_BE_SHOWN for part in outbox.of_run(tx, run.id)):
        return False
    if not runs.end_live(tx, run.id, _END):
        return False
    after_end(tx, rt, run, _END, HUMAN)
    return True
