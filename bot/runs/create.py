"""New runs: for a message, for a reminder, or once more for the messages of a run that ended."""

from __future__ import annotations

from bot.domain.run import Run
from storage import audit_log, inbox, runs
from storage.chats import Chat
from storage.runs import Claimant, NewRun
from storage.statements import clock
from storage.statements.tx import Tx


def new_run(
    chat: Chat,
    request_id: str,
    order_at: float | None,
    now: float,
    *,
    idle: bool,
    by: Claimant | None = None,
    wait: float = 0.0,
    album: str = "",
) -> NewRun:
    """The next run of a chat; `idle`: no other run of the chat is live.

    In an idle chat that is not paused it is the head, and if the chat is not held back by a rate
    limit either, it is born claimed by `by`.
    """
    return NewRun(
        account=chat.account,
        chat=chat.id,
        request_id=request_id,
        order_at=order_at,
        head=idle and not chat.paused(now),
        by=by if chat.not_before <= now else None,
        wait=wait,
        album=album,
    )


def create_run(tx: Tx, chat: Chat, request_id: str, order_at: float | None) -> Run:
    """Insert a run that some worker will claim. The chat is locked."""
    idle = not runs.live_in_chat(tx, chat.id)
    new = new_run(chat, request_id, order_at, clock.read(tx), idle=idle)
    return runs.create(tx, [new])[chat.id]


def again(tx: Tx, chat: Chat, ended: Run, who: str) -> Run:
    """Insert a new run for the messages of one that ended. The chat is locked."""
    messages = inbox.of_run(tx, ended.id)
    request_id = messages[0].request_id if messages else ""
    run = create_run(tx, chat, request_id, ended.created_at)
    inbox.reassign(tx, ended.id, run.id)
    runs.recount_messages(tx, run.id)
    audit_log.note(tx, who, "asked for again", f"as run {run.id}", run=ended.id, chat=chat.id)
    return run
