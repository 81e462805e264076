"""Recording what arrived, exactly once, before anybody is told that it was received.

One transaction an event: find and lock the chat, insert the message (the insert is the
duplicate check), decide what it leads to, and put it into a run. When the chat is idle and
this process has room, that run is inserted already running here, so that the common case
costs one commit.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import Enum
from typing import assert_never

from bot.delivery import notices
from bot.delivery.choices import chosen
from bot.domain.admission import ChatFacts, Unanswered, admit, invited, names_of
from bot.domain.commands import Command, command_of, needs_subject
from bot.domain.message import (
    Address,
    Addressing,
    Edited,
    Event,
    Ignored,
    Inbound,
    Membership,
    Migrated,
)
from bot.domain.run import Run
from bot.domain.terms import IntakeTerms
from bot.intake.batching import place, with_its_bundle
from bot.intake.commands import run_command, subject_of
from bot.leases.recovery import release_chat
from bot.leases.runtime import Runtime
from bot.texts import Text
from storage import audit_log, chats, inbox, outbox, runs
from storage.chats import Chat
from storage.engine.tx import Tx
from storage.runs import Claimant

PLATFORM = "platform"
_MINUTE = 60.0
_DAY = 86_400.0


class Became(Enum):
    """The outcome of recording an event."""

    RUN = "run"
    JOINED = "joined"
    DUPLICATE = "duplicate"
    COMMAND = "command"
    IGNORED = "ignored"
    EDIT = "edit"
    NOTED = "noted"
    DEAD_LETTER = "dead_letter"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome of one event. `run` is set when a run was made; `stopped` are runs that a
    command ended; `wake` says that a worker should look. `callback_id` names a button press
    to be answered, with `toast` as its words."""

    became: Became
    run: Run | None = None
    stopped: tuple[int, ...] = ()
    wake: bool = False
    callback_id: str = ""
    toast: str = ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One payload of one account, verified; `body` is what came over the wire."""

    account: int
    body: str
    via: str = "webhook"
    """The way it came, which names its span."""

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
            may_change = invited(names_of(message), rt.terms.intake.allowed)
            known = _record_edit(tx, arrival.account, message, edited_at, may_change=may_change)
            unknown = "an edit of a message that was never recorded" if known is None else None
            _store_payload(tx, arrival, message=known, ignored=unknown)
            return Recorded(Became.NOTED if known is None else Became.EDIT)
        case Membership():
            _record_membership(tx, arrival.account, event)
            _store_payload(tx, arrival, ignored=f"not a message: {event.reason}")
            return Recorded(Became.NOTED, wake=True)
        case Migrated():
            chats.migrate(tx, arrival.account, event.old, event.new)
            _store_payload(tx, arrival, ignored="not a message: the chat moved")
            return Recorded(Became.NOTED, wake=True)
        case Ignored(reason):
            _store_payload(tx, arrival, ignored=reason)
            return Recorded(Became.IGNORED)
        case other:
            assert_never(other)


def record_dead_letter(tx: Tx, arrival: Arrival, error: str) -> None:
    """Keep a payload that can't be parsed, once."""
    inbox.store_payload(tx, arrival.account, arrival.body, arrival.digest, error=error)


def _store_payload(
    tx: Tx, arrival: Arrival, *, message: int | None = None, ignored: str | None = None
) -> None:
    """Store what came over the wire, with what it is: a message's, or answered by nothing."""
    body, digest = arrival.body, arrival.digest
    inbox.store_payload(tx, arrival.account, body, digest, message=message, ignored=ignored)


def _record_message(
    tx: Tx, rt: Runtime, arrival: Arrival, message: Inbound, by: Claimant | None
) -> Recorded:
    chat = _lock_chat(tx, arrival.account, message)
    sent_before = outbox.bodies(tx, chat.id, message.provider_id)
    message = rt.channels[chat.account].recall(message, sent_before)
    message = chosen(tx, rt, chat, _with_quoted_words(tx, chat, message))
    facts = _facts(tx, chat, message, rt.terms.intake)
    stored = inbox.store_message(tx, arrival.account, chat.id, message)
    if stored is None:
        return _record_duplicate(tx, arrival, chat, message)
    _store_payload(tx, arrival, message=stored)
    if not message.sender.is_bot:
        # A group speaks the language of whoever spoke to us last.
        language = "" if message.addressing is Addressing.NOT_US else message.sender.language
        name = message.chat_name or message.sender.name
        chats.heard(tx, chat.id, message.sent_at, name, language, message.address)
    message = with_its_bundle(tx, rt, chat, message)
    command = _command(tx, rt, chat, message)
    reason = admit(message, command, facts, rt.terms.intake)
    if reason is not None:
        inbox.ignore(tx, stored, reason)
        done = Recorded(Became.IGNORED, wake=_say_refusal(tx, rt, chat, reason))
    elif command is not None:
        inbox.ignore(tx, stored, Unanswered.COMMAND, command)
        handled = run_command(tx, rt, chats.get(tx, chat.id), message, command)
        done = Recorded(Became.COMMAND, stopped=handled.stopped, wake=True, toast=handled.toast)
    else:
        made, wake = place(tx, rt, chat, message, stored, by)
        done = Recorded(Became.JOINED if made is None else Became.RUN, made, wake=wake)
    return replace(done, callback_id=message.callback_id)


def _with_quoted_words(tx: Tx, chat: Chat, message: Inbound) -> Inbound:
    """The message with the words that it answers, where its platform only names them. Those of
    another chat are nobody's business here."""
    quoted = message.quoted
    if quoted is None or quoted.text or not quoted.provider_id:
        return message
    ours = outbox.by_receipt(tx, chat.account, quoted.provider_id)
    if ours is not None and ours.chat == chat.id:
        return replace(message, quoted=replace(quoted, text=ours.body.text, from_us=True))
    theirs = inbox.words(tx, chat.id, quoted.provider_id)
    if theirs is None:
        return message
    return replace(message, quoted=replace(quoted, text=theirs, from_us=False))


def _lock_chat(tx: Tx, account: int, message: Inbound) -> Chat:
    """The chat of a message, made if it is new, locked, with its further addresses known."""
    topic = message.address.topic
    addresses = [message.address, *(Address(alias, topic) for alias in message.aliases)]
    found = chats.locate(tx, account, addresses)
    if found is None:
        name, language = message.chat_name or message.sender.name, message.sender.language
        found = chats.create(tx, account, message.address, message.chat_kind, name, language)
    return chats.link(tx, account, found, addresses)


def _record_duplicate(tx: Tx, arrival: Arrival, chat: Chat, message: Inbound) -> Recorded:
    """Count the delivery, and merge in what it tells beyond the one before: a webhook knows more
    of the content, the platform's list knows when the message was written."""
    inbox.count_delivery(tx, arrival.account, message.request_id)
    if message.sent_at is not None:
        inbox.fill_sent_times(tx, arrival.account, {message.request_id: message.sent_at})
    found = inbox.listed_only(tx, arrival.account, message)
    if found is not None:
        stored, run = found
        if run is None or runs.lock_unclaimed(tx, run):
            inbox.enrich(tx, stored, message)
            audit_log.note(tx, PLATFORM, "told more by its webhook", run=run, chat=chat.id)
        _store_payload(tx, arrival, message=stored)
    return Recorded(Became.DUPLICATE, wake=release_chat(tx, chat.id, "intake"))


def _record_edit(
    tx: Tx, account: int, message: Inbound, edited_at: float, *, may_change: bool
) -> int | None:
    """Record an edit of a message; if its author may change anything, it is read by a run that
    was never claimed. Returns the message, or None when it was never recorded: an edit alone is
    answered by nothing."""
    known = inbox.known(tx, account, message.request_id)
    if known is None:
        return None
    stored, run, _ = known
    found = None if run is None else runs.find(tx, run)
    used = False
    if found is not None:
        chats.lock(tx, found.chat)
        used = may_change and runs.lock_unclaimed(tx, found.id)
    now = inbox.known(tx, account, message.request_id)  # Read again, under the chat's lock.
    before = "" if now is None else now[2]
    if inbox.store_edit(tx, stored, edited_at, before, message.text, used=used) and used:
        inbox.use_edit(tx, stored, edited_at, message.text)
    return stored


def _record_membership(tx: Tx, account: int, event: Membership) -> None:
    """Blocked: every topic of the chat is parked. Let in again: all are reachable."""
    for chat in chats.at_address(tx, account, event.address.chat):
        parked = chats.lock(tx, chat).unreachable_reason is not None
        if event.reachable and parked:
            chats.unpark(tx, chat)
            audit_log.note(tx, PLATFORM, "reachable again", event.reason, chat=chat)
        elif not event.reachable and chats.park(tx, chat, event.reason, event.at):
            audit_log.note(tx, PLATFORM, "chat parked", event.reason, chat=chat)


def _command(tx: Tx, rt: Runtime, chat: Chat, message: Inbound) -> Command | None:
    """The command that this message is; a mere word counts only if it has a subject."""
    own = notices.pressed(message.button)
    if own is not None:
        return Command(own.ask.value)
    form = rt.channels[chat.account].traits.commands
    command = command_of(message, form, rt.command_words)
    if command is None or not needs_subject(command, message):
        return command
    return command if subject_of(tx, chat, command) else None


def _facts(tx: Tx, chat: Chat, message: Inbound, terms: IntakeTerms) -> ChatFacts:
    turns, fast = terms.turns_per_day, terms.messages_per_minute
    return ChatFacts(
        opted_out=chat.opted_out_at is not None,
        recent_messages=inbox.recent_messages(tx, chat.id, _MINUTE, fast, message.sent_at),
        waiting_messages=runs.waiting_messages(tx, chat.id),
        recent_turns=runs.recent_turns(tx, chat.id, _DAY, turns) if turns else 0,
        names=chats.names(tx, chat.id) if terms.allowed else frozenset(),
    )


_REFUSALS = {
    Unanswered.NOT_ALLOWED: (Text.NOT_ALLOWED, 10 * 365 * _DAY),
    Unanswered.TOO_FAST: (Text.TOO_FAST, _MINUTE),
    Unanswered.TOO_MANY_WAITING: (Text.TOO_MANY_WAITING, _MINUTE),
    Unanswered.DAILY_LIMIT: (Text.DAILY_LIMIT, _DAY / 2),
}
"""The text that tells of a refusal, and the seconds until it is told again: once a burst, so that
no burst is refused in silence."""


def _say_refusal(tx: Tx, rt: Runtime, chat: Chat, reason: Unanswered) -> bool:
    """Say once why there is no answer, where the person is told at all."""
    if reason not in _REFUSALS:
        return False
    text, again_after = _REFUSALS[reason]
    if not chats.tell_once(tx, chat.id, reason.value, again_after):
        return False
    chat = chats.get(tx, chat.id)
    notices.say(tx, rt, chat, notices.plain(rt, chat, text))
    return True
