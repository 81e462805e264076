"""Recording one event by itself, in one transaction, before its platform is told 2xx.

For a message the transaction locks the chat, inserts the message (the insert is the duplicate
check), decides what follows from it, and puts it into a run. If the chat is idle and this process
has room, that run is inserted already running here, so that the common case costs one commit.

Ordinary messages are recorded together, by `together.py`. Everything else comes here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import assert_never

from bot.delivery import notices
from bot.delivery.choices import chosen
from bot.domain.commands import Command, needs_subject
from bot.domain.decisions.admission import Unanswered, admit, invited, names_of
from bot.domain.message import (
    Address,
    Addressing,
    AnsweredByHand,
    ChatKind,
    Edited,
    Ignored,
    Inbound,
    Membership,
    Migrated,
    Reported,
    Revoked,
)
from bot.intake.arrival import Arrival, Became, Entry, Recorded
from bot.intake.batching import place, with_its_bundle
from bot.intake.by_hand import answered_before, end_answered, record_answer
from bot.intake.changes import not_come, record_deletion, record_edit, without_words
from bot.intake.commands import run_command, subject_of
from bot.leases.recovery import release_chat
from bot.leases.runtime import Runtime
from bot.texts import Text
from storage import audit_log, chats, inbox, outbox, runs
from storage.chats import Chat, NewChat, requests
from storage.inbox import NewMessage
from storage.runs import Claimant
from storage.statements.tx import Tx
from storage.views.arrivals import Standing, standing

PLATFORM = "platform"
_MINUTE = 60.0
_HOUR = 3600.0
_DAY = 86_400.0


def record_event(tx: Tx, rt: Runtime, entry: Entry) -> Recorded:
    """Record one event by itself, with everything that follows from it."""
    arrival = entry.arrival
    match entry.event:
        case Inbound() as message:
            return _record_message(tx, rt, arrival, message, entry.by)
        case Edited() as event:
            return _record_edit(tx, rt, arrival, event)
        case Revoked() as event:
            return _record_deletion(tx, rt, arrival, event)
        case AnsweredByHand() as event:
            return _record_answer(tx, rt, arrival, event)
        case Membership() as event:
            _record_membership(tx, arrival.account, event)
            _keep(tx, arrival, ignored=f"not a message: {event.reason}")
            return Recorded(Became.NOTED, wake=True)
        case Migrated() as event:
            return _record_move(tx, arrival, event)
        case Reported(reason):
            _keep(tx, arrival, ignored=reason)
            said = f"{rt.channels[arrival.account].account}: {reason}"
            noted = audit_log.note_once(tx, PLATFORM, audit_log.ACCOUNT_REPORT, said, within=_HOUR)
            return Recorded(Became.NOTED, report=said if noted else "")
        case Ignored(reason):
            _keep(tx, arrival, ignored=reason)
            return Recorded(Became.IGNORED)
        case other:
            assert_never(other)


def _record_move(tx: Tx, arrival: Arrival, event: Migrated) -> Recorded:
    """Move a chat to its new address, once: when the same move is delivered again, the old address
    may belong to a stranger."""
    of_this_move = f"{arrival.digest} {event.old} {event.new}".encode("utf-8", "surrogatepass")
    kept = arrival.payload(ignored="not a message: the chat moved")
    kept = kept._replace(digest=hashlib.sha256(of_this_move).hexdigest())
    if inbox.is_kept(tx, arrival.account, kept.digest):
        return Recorded(Became.DUPLICATE)
    chats.migrate(tx, arrival.account, event.old, event.new)
    if event.left:
        chats.leave_address(tx, arrival.account, event.old)
    inbox.store_payloads(tx, [kept])
    return Recorded(Became.NOTED, wake=True)


def _record_edit(tx: Tx, rt: Runtime, arrival: Arrival, event: Edited) -> Recorded:
    message, at = event.message, event.edited_at
    record = partial(record_edit, tx, arrival.account, message, at)
    may_change = invited(names_of(message), rt.terms.intake.allowed)
    known, deleted = record(may_change=may_change)
    unknown = known is None
    if unknown and rt.channels[arrival.account].traits.edits_overtake:
        # The message may still come: a row for it is made now, as for a deletion.
        chat = _lock_chat(tx, arrival.account, message)
        known, deleted = record(may_change=may_change)
        unknown = known is None
        if unknown:
            awaited = not_come(message)
            row = NewMessage(arrival.account, chat.id, awaited, "", ignored=Unanswered.AWAITED)
            inbox.store_messages(tx, [row])
            known, deleted = record(may_change=may_change)
    if deleted:
        return Recorded(Became.IGNORED)
    reason = "an edit of a message that was never recorded" if unknown else None
    _keep(tx, arrival, message=known, ignored=reason)
    return Recorded(Became.NOTED if unknown else Became.EDIT)


def _record_deletion(tx: Tx, rt: Runtime, arrival: Arrival, event: Revoked) -> Recorded:
    known, stopped = record_deletion(tx, rt, arrival.account, event)
    unknown = None
    if known is None:
        # The message may still come: it then finds this row, and is not answered.
        message = without_words(event)
        chat = _lock_chat(tx, arrival.account, message)
        known, stopped = record_deletion(tx, rt, arrival.account, event)
        if known is None:
            unknown = "a deletion of a message that was never recorded"
            row = NewMessage(arrival.account, chat.id, message, "", ignored=Unanswered.SERVICE)
            inbox.store_messages(tx, [row])
    _keep(tx, arrival, message=known, ignored=unknown)
    return Recorded(Became.NOTED, stopped=stopped, wake=bool(stopped))


def _record_answer(tx: Tx, rt: Runtime, arrival: Arrival, event: AnsweredByHand) -> Recorded:
    addresses = _all_of(event.address, event.aliases)
    kind = ChatKind.PRIVATE
    chat = _at(tx, NewChat(arrival.account, event.address, kind, "", ""), addresses)
    is_new, ended = record_answer(tx, rt, chat, event)
    if not is_new:
        return Recorded(Became.DUPLICATE)
    return Recorded(Became.NOTED, stopped=ended, wake=bool(ended))


def record_dead_letter(tx: Tx, arrival: Arrival, error: str) -> None:
    """Keep a payload that can't be parsed, once."""
    inbox.store_payloads(tx, [arrival.payload(error=error)])


def _keep(
    tx: Tx, arrival: Arrival, *, message: int | None = None, ignored: str | None = None
) -> None:
    inbox.store_payloads(tx, [arrival.payload(message=message, ignored=ignored)])


def _record_message(
    tx: Tx, rt: Runtime, arrival: Arrival, message: Inbound, by: Claimant | None
) -> Recorded:
    chat = _lock_chat(tx, arrival.account, message)
    if known := known_otherwise(tx, [(arrival, chat.id, message)]):
        inbox.count_deliveries(tx, list(known.values()))
        return Recorded(Became.DUPLICATE)
    if message.button:
        sent_before = outbox.bodies(tx, chat.id, message.provider_id)
        message = rt.channels[chat.account].recall(message, sent_before)
    message = chosen(tx, rt, chat, _with_quoted_words(tx, chat, message))
    [met] = standing(tx, [(chat.id, arrival.account, message)], rt.terms.intake)
    new = NewMessage(arrival.account, chat.id, message, arrival.body)
    # This also goes for a message of which only an edit has come.
    forgotten = met.known is not None and requests.is_forgotten(tx, chat.id, met.known)
    edited = None if met.known is None or forgotten else inbox.arrive(tx, met.known, new)
    if met.known is not None and edited is None:
        return _record_duplicate(tx, arrival, chat, message, met, forgotten=forgotten)
    stored = met.known or inbox.store_messages(tx, [new])[0].id
    if not message.sender.is_bot:
        chat = heard(rt, chat, message, met.now)
        chats.heard(tx, [chat])
    message = with_its_bundle(tx, rt, chat, message)
    command = _command(tx, rt, chat, message)  # by the original text: in an edit it has no effect
    message = message if edited is None else replace(message, text=edited.text)
    names = chats.names(tx, chat.id) if rt.terms.intake.allowed else frozenset()
    reason = admit(message, command, met.facts(chat, names), rt.terms.intake)
    if reason is not None:
        inbox.ignore(tx, stored, reason)
        done = Recorded(Became.IGNORED, wake=_say_refusal(tx, rt, chat, reason))
    elif command is not None:
        inbox.ignore(tx, stored, Unanswered.COMMAND, command)
        handled = run_command(tx, rt, chat, message, command)
        done = Recorded(Became.COMMAND, stopped=handled.stopped, wake=True, toast=handled.toast)
    else:
        done = _owe(tx, rt, chat, message, stored, by)
    return replace(done, callback_id=message.callback_id)


def _owe(
    tx: Tx, rt: Runtime, chat: Chat, message: Inbound, stored: int, by: Claimant | None
) -> Recorded:
    """Put the message into a run. If a person of ours answered it before it came, that run ends at
    once."""
    answered = answered_before(tx, chat, message.sent_at)
    made, wake = place(tx, rt, chat, message, stored, by if answered is None else None)
    if made is not None and answered is not None and end_answered(tx, rt, made, answered):
        made = None
    return Recorded(Became.JOINED if made is None else Became.RUN, made, wake=wake)


def known_otherwise(
    tx: Tx, came: Sequence[tuple[Arrival, int, Inbound]]
) -> Mapping[tuple[int, str], int]:
    """The messages of clients that are recorded already, under the request id that they have at
    another address of their chat: a guest who became a user may hand a message in as either.

    `came` has arrival, chat and message; returned are the ids of the recorded ones, by account and
    request id. The chats are locked, so nobody records one of them meanwhile.
    """
    named = [(arrival.named, arrival, chat, said) for arrival, chat, said in came if arrival.named]
    if not named:
        return {}
    known_at = chats.addresses_each(tx, {chat for _, _, chat, _ in named})
    sought = {
        (arrival.account, name(address)): (arrival.account, said.request_id)
        for name, arrival, chat, said in named
        for address in known_at[chat]
        if address != said.address
    }
    found = inbox.known_each(tx, list(sought)) if sought else {}
    return {sought[other]: message for other, message in found.items()}


def heard(rt: Runtime, chat: Chat, message: Inbound, now: float) -> Chat:
    """The chat after this message. A group's language is that of whoever addressed us last."""
    sender = message.sender
    language = "" if message.addressing is Addressing.NOT_US else sender.language
    at = now if message.sent_at is None else message.sent_at
    if rt.channels[chat.account].traits.free_text_window is not None:
        at = min(at, now)  # a time in the future would keep the window open for too long
    return chat.heard(at, message.chat_name or sender.name, language, message.address.chat)


def addresses_of(message: Inbound) -> Sequence[Address]:
    """The addresses of the sender of a message, beginning with that of the message."""
    return _all_of(message.address, message.aliases)


def _all_of(address: Address, aliases: Sequence[str]) -> Sequence[Address]:
    return list(dict.fromkeys((address, *(Address(a, address.topic) for a in aliases))))


def new_chat(account: int, message: Inbound) -> NewChat:
    """The chat that is made for a first message."""
    name = message.chat_name or message.sender.name
    return NewChat(account, message.address, message.chat_kind, name, message.sender.language)


def _with_quoted_words(tx: Tx, chat: Chat, message: Inbound) -> Inbound:
    """The message with the words that it quotes, if its platform only names the quoted message. The
    words of another chat are not looked up."""
    quoted = message.quoted
    if quoted is None or quoted.text or not message.quoted_request:
        return message
    ours = outbox.by_receipt(tx, chat.account, quoted.provider_id)
    if ours is not None and ours.chat == chat.id:
        return replace(message, quoted=replace(quoted, text=ours.body.text, from_us=True))
    theirs = inbox.words(tx, chat.account, chat.id, message.quoted_request)
    if theirs is None:
        return message
    return replace(message, quoted=replace(quoted, text=theirs, from_us=False))


def _lock_chat(tx: Tx, account: int, message: Inbound) -> Chat:
    """The chat of a message, locked; made if it is new, and linked to all of its addresses."""
    addresses = addresses_of(message)
    if message.person and len(addresses) > 1:
        _part(tx, account, message)
    return _at(tx, new_chat(account, message), addresses)


def _at(tx: Tx, new: NewChat, addresses: Sequence[Address]) -> Chat:
    """The chat at these addresses, locked; made if there is none."""
    found = chats.locate(tx, new.account, addresses)
    if found is None:
        chats.create(tx, [new])
        found = chats.locate(tx, new.account, addresses)
        assert found is not None
    return chats.link(tx, new.account, found, addresses)


def _part(tx: Tx, account: int, message: Inbound) -> None:
    """Take the number of a message away from a chat in which somebody else wrote from it last. As
    no platform told us that this person has a new id, the number is a stranger's now."""
    number, person = message.address, Address(message.person)
    before = chats.locate(tx, account, [number])
    if before is None or before == chats.locate(tx, account, [person]):
        return
    known = chats.lock(tx, before)
    wrote = inbox.author_at(tx, known.id, number.chat)
    if wrote in ("", person.chat):
        return
    if known.address == number:
        chats.migrate(tx, account, number, Address(wrote))
    chats.leave_address(tx, account, number)
    audit_log.note(tx, PLATFORM, "the number is somebody else's now", chat=known.id)


def _record_duplicate(
    tx: Tx, arrival: Arrival, chat: Chat, message: Inbound, met: Standing, *, forgotten: bool
) -> Recorded:
    """Count the delivery, and add what it tells beyond the earlier one: a webhook has more of the
    content, the platform's list has the time of writing. Nothing is added to a message whose words
    were deleted."""
    assert met.known is not None
    inbox.count_deliveries(tx, [met.known])
    if message.sent_at is not None:
        inbox.fill_sent_times(tx, arrival.account, {message.request_id: message.sent_at})
    if not forgotten and inbox.tells_more(message, met.known_extra or "{}"):
        if met.known_run is None or runs.lock_unclaimed(tx, met.known_run):
            inbox.enrich(tx, met.known, message)
            told = "told more by its webhook"
            audit_log.note(tx, PLATFORM, told, run=met.known_run, chat=chat.id)
        _keep(tx, arrival, message=met.known)
    return Recorded(Became.DUPLICATE, wake=release_chat(tx, chat.id, "intake"))


def _record_membership(tx: Tx, account: int, event: Membership) -> None:
    """Park every topic of a chat that blocked the bot; unpark them once it is let in again."""
    for chat in chats.at_address(tx, account, event.address.chat):
        parked = chats.lock(tx, chat).unreachable_reason is not None
        if event.reachable and parked:
            chats.unpark(tx, chat)
            audit_log.note(tx, PLATFORM, "reachable again", event.reason, chat=chat)
        elif not event.reachable and chats.park(tx, chat, event.reason, event.at):
            audit_log.note(tx, PLATFORM, "chat parked", event.reason, chat=chat)


def _command(tx: Tx, rt: Runtime, chat: Chat, message: Inbound) -> Command | None:
    """The command that this message is, if any. A bare word counts as one only if there is
    something for it to act on."""
    own = notices.pressed(message.button)
    if own is not None:
        return Command(own.ask.value)
    command = rt.command_of(chat.account, message)
    if command is None or not needs_subject(command, message):
        return command
    return command if subject_of(tx, chat, command) else None


REFUSALS = {
    Unanswered.NOT_ALLOWED: (Text.NOT_ALLOWED, 10 * 365 * _DAY),
    Unanswered.TOO_FAST: (Text.TOO_FAST, _MINUTE),
    Unanswered.TOO_MANY_WAITING: (Text.TOO_MANY_WAITING, _MINUTE),
    Unanswered.DAILY_LIMIT: (Text.DAILY_LIMIT, _DAY / 2),
}
"""For each refusal that is told: its text, and the seconds in which it is told only once, so that a
burst gets one such notice and not many."""


def _say_refusal(tx: Tx, rt: Runtime, chat: Chat, reason: Unanswered) -> bool:
    """Post the notice that there is no answer, if the reason has one and it is due. Returns whether
    it was posted."""
    if reason not in REFUSALS:
        return False
    text, again_after = REFUSALS[reason]
    if not chats.tell_once(tx, chat.id, reason.value, again_after):
        return False
    notices.say(tx, rt, chat, notices.plain(rt, chat, text))
    return True
