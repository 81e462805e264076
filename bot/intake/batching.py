"""Batching: a message joins a run that waits for more, or gets a run of its own."""

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
    """A new run for a message."""
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
    """Let the message join a run that waits for more, or make a new one. Returns the run if it is
    new, and whether a worker should look. The chat is locked."""
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
        # Parts of the same album that came earlier, when nothing in it concerned us yet.
        reason = Unanswered.NOT_ADDRESSED
        if inbox.adopt_album(tx, chat.id, message.bundle, reason, terms.album_longest, run.id):
            runs.recount_messages(tx, run.id)
    # Also when it joined: a worker that looked just now skipped the run, which was locked.
    return made, released or run.state is RunState.READY


def with_its_bundle(tx: Tx, rt: Runtime, chat: Chat, message: Inbound) -> Inbound:
    """The message, addressed to us if it belongs to a bundle that is. In a group, only one member
    of an album, or one piece of a text, has the words that address us."""
    concerns_us = message.addressing is not Addressing.NOT_US
    if message.chat_kind is not ChatKind.GROUP or concerns_us:
        return message
    for run in (live for live in runs.live_in_chat(tx, chat.id) if live.attempts == 0):
        if belongs(message, _began(tx, run, message), clock.read(tx), rt.terms.intake):
            return replace(message, addressing=Addressing.MENTION)
    return message


def gather_on(tx: Tx, rt: Runtime, name: str) -> None:
    """Let bundles that were being gathered wait for more once again, after a time in which no
    process listened. Not if a process other than this one, called `name`, did listen: each start of
    a process that keeps dying would put them off."""
    if not holders.listens_beside(tx, rt.terms.work.lease.seconds, name):
        runs.gather_on(tx, rt.mine, rt.terms.intake.album_longest)


def _join(tx: Tx, run: Run, message: Inbound, now: float, terms: IntakeTerms) -> bool:
    """Let the message join the run, if the run still takes it. Returns whether it did."""
    if run.attempts > 0:
        return False
    matters = message.gathers or terms.burst is Burst.EACH
    began = _began(tx, run, message) if matters else None
    until = joins_until(run.attempts, run.created_at, message, began, now, terms)
    wait = wait_for_more(message, terms)
    return until is not None and run.id in runs.join(tx, [(run.id, wait, until)], at_once=False)


def _began(tx: Tx, run: Run, message: Inbound) -> float | None:
    """The time at which the message's album began in the run; of a bundle without a name, the time
    at which its last message came."""
    find = inbox.album_began if message.album else inbox.last_of_bundle
    return find(tx, run.id, message.bundle)
