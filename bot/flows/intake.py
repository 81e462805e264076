"""Recording what arrived, exactly once, before anybody is told that it was received.

One transaction an event: find and lock the chat, insert the message (the insert is the
duplicate check), decide what it leads to, and put it into a run. When the chat is idle and
this process has room, that run is inserted already running here, so that the common case
costs one commit.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from bot.domain.admit import (
    TOLD_ONCE,
    Admission,
    Answer,
    ChatFacts,
    Ignore,
    Obey,
    Unanswered,
    admit,
)
from bot.domain.commands import Command, command_of, needs_subject
from bot.domain.message import Address, Edited, Event, Ignored, Inbound, Membership, Migrated
from bot.domain.run import Run, RunState
from bot.domain.terms import Burst, IntakeTerms
from bot.flows import notices
from bot.flows.merge import link, migrate
from bot.flows.obey import obey, subject_of
from bot.flows.recover import release_chat
from bot.flows.runtime import Runtime
from bot.texts import Text
from storage import chats, clock, events, inbox, runs
from storage.chats import Chat
from storage.runs import Claimant, NewRun
from storage.tx import Tx

_DAY = 86_400.0


class Became(Enum):
    """What an event led to."""

    RUN = "run"
    JOINED = "joined"
    DUPLICATE = "duplicate"
    COMMAND = "command"
    IGNORED = "ignored"
    EDIT = "edit"
    NOTED = "noted"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome of one event. `run` is set when a run was made; `stopped` are runs that a
    command ended; `wake` says that a worker should look."""

    became: Became
    run: Run | None = None
    stopped: tuple[int, ...] = ()
    wake: bool = False
    callback_id: str = ""
    account: int = 0


@dataclass(frozen=True, slots=True)
class Arrival:
    """One payload of one account, verified; `body` is what came over the wire."""

    account: int
    body: str

    @property
    def digest(self) -> str:
        """Names the payload, so that a dead letter is kept once."""
        return hashlib.sha256(self.body.encode("utf-8", "surrogatepass")).hexdigest()


def record_event(
    tx: Tx, rt: Runtime, arrival: Arrival, event: Event, by: Claimant | None
) -> Recorded:
    """Record one event of a payload; everything that it leads to is in this transaction."""
    match event:
        case Inbound():
            return _record_message(tx, rt, arrival, event, by)
        case Edited(message, edited_at):
            return _record_edit(tx, arrival, message, edited_at)
        case Membership():
            return _record_membership(tx, arrival, event)
        case Migrated(old, new):
            inbox.store_payload(tx, arrival.account, arrival.body, arrival.digest)
            migrate(tx, arrival.account, old, new)
            return Recorded(Became.NOTED)
        case Ignored(reason):
            inbox.store_payload(tx, arrival.account, arrival.body, arrival.digest, ignored=reason)
            return Recorded(Became.IGNORED)
        case other:
            assert_never(other)


def record_dead_letter(tx: Tx, arrival: Arrival, error: str) -> None:
    """Keep a payload that can't be parsed, once."""
    inbox.store_payload(tx, arrival.account, arrival.body, arrival.digest, error=error)


def _record_message(
    tx: Tx, rt: Runtime, arrival: Arrival, message: Inbound, by: Claimant | None
) -> Recorded:
    chat = _chat_of(tx, arrival.account, message)
    facts = _facts(tx, chat, rt.terms.intake)
    stored = inbox.store_message(tx, arrival.account, chat.id, message)
    if stored is None:
        inbox.count_delivery(tx, arrival.account, message.request_id)
        woken = release_chat(tx, chat.id, rt.terms.work.lease.seconds, "intake")
        return Recorded(Became.DUPLICATE, wake=woken, callback_id=message.callback_id)
    inbox.store_payload(tx, arrival.account, arrival.body, arrival.digest, message=stored)
    if not message.sender.is_bot:
        _heard(tx, chat, message)
    admission = admit(message, _command(tx, rt, chat, message), facts, rt.terms.intake)
    return _lead_on(tx, rt, chat, _New(message, stored, admission), by)


@dataclass(frozen=True, slots=True)
class _New:
    """A message that was not known, its row, and what was decided about it."""

    message: Inbound
    stored: int
    admission: Admission


def _lead_on(tx: Tx, rt: Runtime, chat: Chat, new: _New, by: Claimant | None) -> Recorded:
    """What a new message leads to: a run, a command carried out, or nothing with a reason."""
    message, stored = new.message, new.stored
    match new.admission:
        case Answer():
            return _answer(tx, rt, chat, message, stored, by)
        case Obey(command):
            inbox.ignore(tx, stored, f"{Unanswered.COMMAND}: {command}")
            obeyed = obey(tx, rt, chats.get(tx, chat.id), message, command)
            return Recorded(
                Became.COMMAND, stopped=obeyed.stopped, wake=True, callback_id=message.callback_id
            )
        case Ignore(reason):
            inbox.ignore(tx, stored, reason)
            told = reason in TOLD_ONCE and _tell(tx, rt, chat, reason)
            return Recorded(Became.IGNORED, wake=told, callback_id=message.callback_id)
        case other:
            assert_never(other)


def _command(tx: Tx, rt: Runtime, chat: Chat, message: Inbound) -> Command | None:
    """The command that this message is; a mere word counts only if it has a subject."""
    own = notices.pressed(message.button)
    if own is not None:
        return Command.RESEND if own.ask is notices.Ask.RESEND else Command.RETRY
    channel = rt.channels[chat.account].name
    command = command_of(message, channel, rt.command_words)
    if command is None or not needs_subject(command, message):
        return command
    return command if subject_of(tx, chat, command) else None


def _chat_of(tx: Tx, account: int, message: Inbound) -> Chat:
    """The chat of a message, made if it is new, locked, with its further addresses known."""
    topic = message.address.topic
    aliases = [Address(alias, topic) for alias in message.aliases]
    found = chats.locate(tx, account, [message.address, *aliases])
    if found is None:
        name = message.chat_name or message.sender.name
        found = chats.create(
            tx, account, message.address, message.chat_kind, name, message.sender.language
        )
    return link(tx, account, found, [message.address, *aliases])


def _heard(tx: Tx, chat: Chat, message: Inbound) -> None:
    name = message.chat_name or message.sender.name
    chats.heard(tx, chat.id, message.sent_at, name, message.sender.language, message.address)


def _facts(tx: Tx, chat: Chat, terms: IntakeTerms) -> ChatFacts:
    turns = terms.turns_per_day
    return ChatFacts(
        opted_out=chat.opted_out_at is not None,
        recent_messages=chats.recent_messages(tx, chat.id, 60.0, terms.messages_per_minute),
        waiting_messages=chats.waiting_messages(tx, chat.id),
        recent_turns=chats.recent_turns(tx, chat.id, _DAY, turns) if turns else 0,
    )


_REFUSAL_TEXTS = {
    Unanswered.NOT_ALLOWED: Text.NOT_ALLOWED,
    Unanswered.TOO_FAST: Text.TOO_FAST,
    Unanswered.TOO_MANY_WAITING: Text.TOO_MANY_WAITING,
    Unanswered.DAILY_LIMIT: Text.DAILY_LIMIT,
}
_TOLD_AGAIN_AFTER = {
    Unanswered.NOT_ALLOWED: 10 * 365 * _DAY,
    Unanswered.TOO_FAST: 600.0,
    Unanswered.TOO_MANY_WAITING: 600.0,
    Unanswered.DAILY_LIMIT: _DAY / 2,
}


def _tell(tx: Tx, rt: Runtime, chat: Chat, reason: Unanswered) -> bool:
    """Say once why there is no answer."""
    if not chats.tell_once(tx, chat.id, reason.value, _TOLD_AGAIN_AFTER[reason]):
        return False
    chat = chats.get(tx, chat.id)
    notices.say(tx, rt, chat, notices.plain(rt, chat, _REFUSAL_TEXTS[reason]))
    return True


def _answer(
    tx: Tx, rt: Runtime, chat: Chat, message: Inbound, stored: int, by: Claimant | None
) -> Recorded:
    """Put the message into the run that waits for it, or make one."""
    terms = rt.terms.intake
    wait, longest = _gathering(message, terms)
    order_at = clock.read(tx) if message.sent_at is None else message.sent_at
    live = runs.live_in_chat(tx, chat.id)
    for run in reversed(live):
        if _may_join(tx, run, message, terms) and runs.join(tx, run.id, order_at, wait, longest):
            inbox.assign(tx, stored, run.id)
            return Recorded(Became.JOINED, callback_id=message.callback_id)
    woken = bool(live) and release_chat(tx, chat.id, rt.terms.work.lease.seconds, "intake")
    paused = chat.paused_until is not None and chat.paused_until > clock.read(tx)
    limited = chat.not_before > clock.read(tx)
    new = NewRun(
        account=chat.account,
        chat=chat.id,
        request_id=message.request_id,
        order_at=order_at,
        wait=wait,
        album=message.album,
        stop_revision=chat.stop_revision,
    )
    head = not live and not paused
    run = runs.insert_run(tx, new, None if limited else by, head=head)
    inbox.assign(tx, stored, run.id)
    return Recorded(
        Became.RUN,
        run=run,
        wake=woken or run.state is RunState.READY,
        callback_id=message.callback_id,
    )


def _gathering(message: Inbound, terms: IntakeTerms) -> tuple[float, float]:
    """(seconds to wait for more, the longest such wait): an album's members, a quiet time."""
    if message.album:
        return max(terms.album_quiet, terms.quiet), max(terms.album_longest, terms.quiet)
    return terms.quiet, max(terms.album_longest, 5 * terms.quiet)


def _may_join(tx: Tx, run: Run, message: Inbound, terms: IntakeTerms) -> bool:
    """Whether a message may join this run, if it was never claimed."""
    if run.attempts > 0:
        return False
    if terms.burst is Burst.MERGE:
        return True
    return bool(message.album) and runs.album_of(tx, run.id) == message.album


def _record_edit(tx: Tx, arrival: Arrival, message: Inbound, edited_at: float) -> Recorded:
    """An edit is used while its run was never claimed; later it is only recorded."""
    inbox.store_payload(tx, arrival.account, arrival.body, arrival.digest)
    known = inbox.known(tx, arrival.account, message.request_id)
    if known is None:
        return Recorded(Became.NOTED)
    stored, run, before = known
    used = False
    if run is not None:
        found = runs.find(tx, run)
        if found is not None:
            chats.lock(tx, found.chat)
            used = runs.touch_unclaimed(tx, run)
    if inbox.store_edit(tx, stored, edited_at, before, message.text, used=used) and used:
        inbox.use_edit(tx, stored, edited_at, message.text)
    return Recorded(Became.EDIT)


def _record_membership(tx: Tx, arrival: Arrival, event: Membership) -> Recorded:
    """Blocked: the chat is parked. Let in again: it is reachable."""
    inbox.store_payload(tx, arrival.account, arrival.body, arrival.digest)
    found = chats.locate(tx, arrival.account, [event.address])
    if found is None:
        return Recorded(Became.NOTED)
    chats.lock(tx, found)
    if event.reachable:
        chats.unpark(tx, found)
        events.note(tx, "platform", "reachable again", event.reason, chat=found)
    elif chats.park(tx, found, event.reason, event.at):
        events.note(tx, "platform", "chat parked", event.reason, chat=found)
    return Recorded(Became.NOTED, wake=True)
