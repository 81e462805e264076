"""New runs: for a message, for a reminder, and for the messages of a run that ended."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.run import Run
from storage import audit_log, inbox, runs
from storage.chats import Chat
from storage.engine import clock
from storage.engine.tx import Tx
from storage.runs import Claimant, NewRun


def create_run(
    tx: Tx,
    chat: Chat,
    live: Sequence[Run],
    request_id: str,
    order_at: float,
    *,
    wait: float = 0.0,
    album: str = "",
    by: Claimant | None = None,
) -> Run:
    """Make a run in a chat whose `live` runs these are: its head, and claimed by `by`, if nothing
    is before it and the chat is neither paused nor held back. The chat is locked."""
    now = clock.read(tx)
    new = NewRun(chat.account, chat.id, request_id, order_at, wait, album)
    at_once = by if chat.not_before <= now else None
    return runs.create(tx, new, at_once, head=not live and not chat.paused(now))


def again(tx: Tx, chat: Chat, ended: Run, who: str) -> Run:
    """A new run for the messages of one that ended. The chat is locked."""
    messages = inbox.of_run(tx, ended.id)
    request_id = messages[0].request_id if messages else ""
    run = create_run(tx, chat, runs.live_in_chat(tx, chat.id), request_id, ended.created_at)
    inbox.reassign(tx, ended.id, run.id)
    runs.recount_messages(tx, run.id)
    audit_log.note(tx, who, "asked for again", f"as run {run.id}", run=ended.id, chat=chat.id)
    return run
