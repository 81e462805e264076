"""Which run answers a message: the one that waits for it, or a new one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.domain.admission import Unanswered
from bot.domain.message import Addressing, ChatKind, Inbound
from bot.domain.run import Run, RunState
from bot.domain.terms import Burst, IntakeTerms
from bot.leases.recovery import release_chat
from bot.leases.runtime import Runtime
from storage import inbox, runs
from storage.chats import Chat
from storage.engine import clock
from storage.engine.tx import Tx
from storage.runs import Claimant, NewRun

_QUIET_LONGEST = 5
"""A quiet time is waited for at most so many times over: who never stops is answered too."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The run of a message. `made` is set when it is a new one; `wake`: a worker should look."""

    made: Run | None
    wake: bool = False


def place(
    tx: Tx, rt: Runtime, chat: Chat, message: Inbound, stored: int, by: Claimant | None
) -> Placed:
    """Put the message into the run that waits for it, or make one. The chat is locked."""
    live = runs.live_in_chat(tx, chat.id)
    now = clock.read(tx)
    order_at = now if message.sent_at is None else message.sent_at
    for run in reversed(live):
        if _join(tx, run, message, rt.terms.intake):
            inbox.assign(tx, stored, run.id)
            _adopt(tx, run.id, chat, message, rt.terms.intake)
            # A worker that looked in this very moment passed the run by.
            return Placed(None, run.state is RunState.READY)
    woken = bool(live) and release_chat(tx, chat.id, "intake")
    new = NewRun(
        account=chat.account,
        chat=chat.id,
        request_id=message.request_id,
        order_at=order_at,
        wait=_wait(message, rt.terms.intake),
        album=message.album,
    )
    paused = chat.paused_until is not None and chat.paused_until > now
    at_once = by if chat.not_before <= now else None
    run = runs.create(tx, new, at_once, head=not live and not paused)
    inbox.assign(tx, stored, run.id)
    _adopt(tx, run.id, chat, message, rt.terms.intake)
    return Placed(run, woken or run.state is RunState.READY)


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


def _join(tx: Tx, run: Run, message: Inbound, terms: IntakeTerms) -> bool:
    """Whether the message joined this run: only one that was never claimed takes it."""
    if run.attempts > 0:
        return False
    began = inbox.album_began(tx, run.id, message.album) if message.album else None
    if terms.burst is Burst.EACH and began is None:
        return False
    until = run.created_at + max(terms.album_longest, _QUIET_LONGEST * terms.quiet)
    if message.album:
        until = (clock.read(tx) if began is None else began) + terms.album_longest
    return runs.join(tx, run.id, _wait(message, terms), until)


def _wait(message: Inbound, terms: IntakeTerms) -> float:
    """Seconds to wait for more: an album's next member, or a quiet time."""
    return max(terms.album_quiet, terms.quiet) if message.album else terms.quiet


def _adopt(tx: Tx, run: int, chat: Chat, message: Inbound, terms: IntakeTerms) -> None:
    """Members of a group's album that came before the one with the words."""
    if not message.album or message.chat_kind is not ChatKind.GROUP:
        return
    reason = Unanswered.NOT_ADDRESSED
    if inbox.adopt_album(tx, chat.id, message.album, reason, terms.album_longest, run):
        runs.recount_messages(tx, run)
