"""Batching: a message joins the run that waits for it, or gets a new one."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.decisions.admission import Unanswered, belongs, joins_until, wait_for_more
from bot.domain.decisions.terms import Burst, IntakeTerms
from bot.domain.message import Addressing, ChatKind, Inbound
from bot.domain.run import Run, RunState
from bot.leases.recovery import release_chat
from bot.leases.runtime import Runtime
from bot.runs.create import new_run
from storage import holders, inbox, runs
from storage.chats import Chat
from storage.runs import Claimant, NewRun
from storage.statements import clock
from storage.statements.tx import Tx


def run_for(
    chat: Chat,
    message: Inbound,
    now: float,
    terms: IntakeTerms,
    *,
    idle: bool,
    by: Claimant | None,
) -> NewRun:
    """A run of its own for a message."""
    return new_run(
        chat,
        message.request_id,
        message.sent_at,
        now,
        idle=idle,
        by=by,
        wait=wait_for_more(message, terms),
        album=message.bundle if message.gathers else "",
    )


def place(
    tx: Tx, rt: Runtime, chat: Chat, message: Inbound, stored: int, by: Claimant | None
) -> tuple[Run | None, bool]:
    """Put the message into the run that waits for it, or make one. Returns the run if it is new,
    and whether a worker should look. The chat is locked."""
    terms, now = rt.terms.intake, clock.read(tx)
    live = runs.live_in_chat(tx, chat.id)
    made, released = None, False
    run = next((r for r in reversed(live) if _join(tx, r, message, now, terms)), None)
    if run is None:
        released = bool(live) and release_chat(tx, chat.id, "intake")
        new = run_for(chat, message, now, terms, idle=not live, by=by)
        run = made = runs.create(tx, [new])[chat.id]
    inbox.assign(tx, stored, run.id)
    if message.chat_kind is ChatKind.GROUP:
        # What belongs to it and came before it, when nothing in it concerned us yet.
        reason = Unanswered.NOT_ADDRESSED
        if inbox.adopt_album(tx, chat.id, message.bundle, reason, terms.album_longest, run.id):
            runs.recount_messages(tx, run.id)
    # Also for one that it joined: a worker that looked in this very moment passed it by.
    return made, released or run.state is RunState.READY


def with_its_bundle(tx: Tx, rt: Runtime, chat: Chat, message: Inbound) -> Inbound:
    """In a group only one member of an album, or one piece of a text, carries the words that
    concern us: the others concern us with it."""
    concerns_us = message.addressing is not Addressing.NOT_US
    if message.chat_kind is not ChatKind.GROUP or concerns_us:
        return message
    for run in (live for live in runs.live_in_chat(tx, chat.id) if live.attempts == 0):
        if belongs(message, _began(tx, run, message), clock.read(tx), rt.terms.intake):
            return replace(message, addressing=Addressing.MENTION)
    return message


def gather_on(tx: Tx, rt: Runtime, name: str) -> None:
    """Nobody listened while no process ran: what was being gathered waits for more once again. Not
    where one beside this, of that name, did: each start of one that keeps dying would put it off.
    """
    if not holders.listens_beside(tx, rt.terms.work.lease.seconds, name):
        runs.gather_on(tx, rt.mine, rt.terms.intake.album_longest)


def _join(tx: Tx, run: Run, message: Inbound, now: float, terms: IntakeTerms) -> bool:
    """Join the run if it still takes the message; whether it did."""
    if run.attempts > 0:
        return False
    matters = message.gathers or terms.burst is Burst.EACH
    began = _began(tx, run, message) if matters else None
    until = joins_until(run.attempts, run.created_at, message, began, now, terms)
    wait = wait_for_more(message, terms)
    return until is not None and run.id in runs.join(tx, [(run.id, wait, until)], at_once=False)


def _began(tx: Tx, run: Run, message: Inbound) -> float | None:
    """The time at which the message's album began in the run, or what goes on without a name came
    last."""
    find = inbox.album_began if message.album else inbox.last_of_bundle
    return find(tx, run.id, message.bundle)
