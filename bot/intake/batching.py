"""Batching: a message joins the run that waits for it, or gets a new one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.domain.admission import Unanswered, joins_until, wait_for_more
from bot.domain.message import Addressing, ChatKind, Inbound
from bot.domain.run import Run, RunState
from bot.domain.terms import IntakeTerms
from bot.leases.recovery import release_chat
from bot.leases.runtime import Runtime
from storage import inbox, runs
from storage.chats import Chat
from storage.engine import clock
from storage.engine.tx import Tx
from storage.runs import Claimant, NewRun


@dataclass(frozen=True, slots=True)
class Placed:
    """The run of a message. `made` is set when it is a new one; `wake`: a worker should look."""

    made: Run | None
    wake: bool = False


def place(
    tx: Tx, rt: Runtime, chat: Chat, message: Inbound, stored: int, by: Claimant | None
) -> Placed:
    """Put the message into the run that waits for it, or make one. The chat is locked."""
    terms, now = rt.terms.intake, clock.read(tx)
    order_at = now if message.sent_at is None else message.sent_at
    live = runs.live_in_chat(tx, chat.id)
    made, released = None, False
    run = next((r for r in reversed(live) if _join(tx, r, message, now, terms)), None)
    if run is None:
        released = bool(live) and release_chat(tx, chat.id, "intake")
        new = NewRun(
            account=chat.account,
            chat=chat.id,
            request_id=message.request_id,
            order_at=order_at,
            wait=wait_for_more(message, terms),
            album=message.album,
        )
        paused = chat.paused_until is not None and chat.paused_until > now
        at_once = by if chat.not_before <= now else None
        run = made = runs.create(tx, new, at_once, head=not live and not paused)
    inbox.assign(tx, stored, run.id)
    if message.album and message.chat_kind is ChatKind.GROUP:
        _adopt(tx, run.id, chat, message.album, terms)
    # Also for one that it joined: a worker that looked in this very moment passed it by.
    return Placed(made, released or run.state is RunState.READY)


def with_its_album(tx: Tx, chat: Chat, message: Inbound) -> Inbound:
    """In a group only one member of an album carries the words that concern us: the others
    concern us with it."""
    if not message.album or message.chat_kind is not ChatKind.GROUP:
        return message
    if message.addressing is not Addressing.NOT_US:
        return message
    for run in runs.live_in_chat(tx, chat.id):
        if run.attempts == 0 and inbox.album_began(tx, run.id, message.album) is not None:
            return replace(message, addressing=Addressing.MENTION)
    return message


def _join(tx: Tx, run: Run, message: Inbound, now: float, terms: IntakeTerms) -> bool:
    """Join the run if it still takes the message; whether it did."""
    if run.attempts > 0:
        return False
    began = inbox.album_began(tx, run.id, message.album) if message.album else None
    until = joins_until(run, message, began, now, terms)
    wait = wait_for_more(message, terms)
    return until is not None and runs.join(tx, run.id, wait, until)


def _adopt(tx: Tx, run: int, chat: Chat, album: str, terms: IntakeTerms) -> None:
    """Members of a group's album that came before the one with the words."""
    reason = Unanswered.NOT_ADDRESSED
    if inbox.adopt_album(tx, chat.id, album, reason, terms.album_longest, run):
        runs.recount_messages(tx, run)
