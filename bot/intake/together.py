"""Recording ordinary messages together: a few statements for all that came.

A message is ordinary if its chat is not locked by anybody else and it makes a run, joins one, is
ignored in silence, or is known already. Anything else (commands, buttons, albums, texts in pieces,
edits, refusals that the person is told of) is left to `record.py`, before any of it is written.

The steps of `_record_all` are: lock the chats, read what the decisions need, decide message by
message, and write everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from bot.delivery.choices import chosen
from bot.domain.decisions.admission import Unanswered, admit, joins_until, wait_for_more
from bot.domain.decisions.terms import Burst
from bot.domain.message import Address, ChatKind, Ignored, Inbound
from bot.domain.run import Run, RunState
from bot.intake.arrival import Became, Entry, Recorded
from bot.intake.batching import run_for
from bot.intake.record import REFUSALS, addresses_of, heard, known_otherwise, new_chat
from bot.leases.runtime import Runtime
from storage import chats, inbox, runs
from storage.chats import Chat
from storage.engine.lane import LeftOut
from storage.inbox import NewMessage, StoredMessage
from storage.runs import NewRun
from storage.statements.tx import Tx
from storage.views.arrivals import Standing, Taker, standing
from storage.views.evidence import case_of


@dataclass(frozen=True, slots=True)
class _Known:
    """The message was recorded before, under this id."""

    message: int


@dataclass(frozen=True, slots=True)
class _Join:
    """The message joins a run, which is then put off by `wait` seconds for more messages, at most
    to `until` (epoch seconds)."""

    taker: Taker
    wait: float
    until: float


_Decision = LeftOut | _Known | Unanswered | _Join | NewRun
"""The decision on one message."""


@dataclass(slots=True, eq=False)
class _Member:
    """A message of the list, with what is found out about it on the way: its chat once that is
    locked, and the database's time; what becomes of it; the rows that were made for it."""

    entry: Entry
    message: Inbound
    addresses: Sequence[Address]
    becomes: _Decision = LeftOut.ALONE
    chat: Chat | None = None
    now: float = 0.0
    run: Run | None = None
    stored: StoredMessage | None = None

    @property
    def here(self) -> Chat:
        """Its chat, once that is locked."""
        assert self.chat is not None
        return self.chat


def record_together(tx: Tx, rt: Runtime, entries: Sequence[Entry]) -> Sequence[Recorded | LeftOut]:
    """Record a list of events, each of another chat. Those that are not ordinary are left out."""
    members = {
        place: _Member(entry, entry.event, addresses_of(entry.event))
        for place, entry in enumerate(entries)
        if isinstance(entry.event, Inbound) and _is_ordinary(rt, entry.arrival.account, entry.event)
    }
    if members:
        _record_all(tx, rt, list(members.values()))
    kept = [
        entry.arrival.payload(ignored=entry.event.reason)
        for entry in entries
        if isinstance(entry.event, Ignored)
    ]
    if kept:
        inbox.store_payloads(tx, kept)
    return [_outcome(entry, members.get(place)) for place, entry in enumerate(entries)]


def _is_ordinary(rt: Runtime, account: int, message: Inbound) -> bool:
    """Tell whether the message is ordinary, as far as that can be seen without the rows."""
    if message.button or message.callback_id or message.gathers:
        return False
    if (quoted := message.quoted) is not None and (account in rt.carriers or not quoted.text):
        return False  # The quoted message has to be read, for its choices or its words.
    return rt.command_of(account, message) is None


def _record_all(tx: Tx, rt: Runtime, members: Sequence[_Member]) -> None:
    _lock(tx, members)
    members = [one for one in members if one.chat is not None]
    if not members:
        return
    others = known_otherwise(tx, [(one.entry.arrival, one.here.id, one.message) for one in members])
    came = [(one.here.id, one.entry.arrival.account, one.message) for one in members]
    for one, met in zip(members, standing(tx, came, rt.terms.intake), strict=True):
        one.now = met.now
        name = one.entry.arrival.account, one.message.request_id
        one.becomes = _Known(others[name]) if name in others else _decision(tx, rt, one, met)
    _join(tx, members)
    _begin(tx, members)
    _store(tx, rt, members)
    if known := [one.becomes.message for one in members if isinstance(one.becomes, _Known)]:
        inbox.count_deliveries(tx, known)


def _lock(tx: Tx, members: Sequence[_Member]) -> None:
    """Lock the chat of each message; a chat that is not known yet is made."""
    found = _locked(tx, members)
    new = [one for one in members if one not in found and len(one.addresses) == 1]
    if new:
        tx.hurry()  # Another list may be making the same chat just now.
        making = [new_chat(one.entry.arrival.account, one.message) for one in new]
        chats.create(tx, making, wait=False)
        found |= _locked(tx, new)
    taken = set[tuple[int, str]]()
    for one in members:
        here = found.get(one, ())
        one.becomes = LeftOut.LOCKED
        if len(one.addresses) > 1 and (len(here) < len(one.addresses) or len(set(here)) > 1):
            one.becomes = LeftOut.ALONE  # The person has a new address, or several chats.
        elif here:
            names = {(here[0].id, ""), (one.entry.arrival.account, one.message.request_id)}
            if taken.isdisjoint(names):
                one.chat = here[0]
            taken |= names


def _locked(tx: Tx, members: Sequence[_Member]) -> dict[_Member, list[Chat]]:
    """The chats at the addresses of each message that could be locked."""
    sought = [(one, address) for one in members for address in one.addresses]
    places = [(one.entry.arrival.account, address) for one, address in sought]
    found: dict[_Member, list[Chat]] = {}
    for place, chat in chats.lock_at(tx, places).items():
        found.setdefault(sought[place][0], []).append(chat)
    return found


def _decision(tx: Tx, rt: Runtime, one: _Member, met: Standing) -> _Decision:
    chat, message, terms = one.here, one.message, rt.terms.intake
    group = message.chat_kind is ChatKind.GROUP
    if chat.answered(message.sent_at):
        return LeftOut.ALONE
    if met.deserted or met.crossed or (met.gathers and (group or terms.burst is Burst.EACH)):
        return LeftOut.ALONE
    if met.left_behind or chosen(tx, rt, chat, message) is not message:
        return LeftOut.ALONE
    if met.known is not None:
        learns = inbox.tells_more(message, met.known_extra or "{}") or (
            met.known_sent_at is None and message.sent_at is not None
        )
        return LeftOut.ALONE if learns else _Known(met.known)
    reason = admit(message, None, met.facts(chat), terms)
    if reason is not None:
        return LeftOut.ALONE if reason in REFUSALS else reason
    if (taker := met.taker) is not None:
        until = joins_until(taker.attempts, taker.made_at, message, None, met.now, terms)
        if until is not None:
            return _Join(taker, wait_for_more(message, terms), until)
    return run_for(chat, message, met.now, terms, idle=met.idle, by=one.entry.by)


def _join(tx: Tx, members: Sequence[_Member]) -> None:
    """Join the runs. If one was claimed meanwhile, its message is left out and decided again."""
    joins = {one: one.becomes for one in members if isinstance(one.becomes, _Join)}
    if joins:
        to_join = [(it.taker.run, it.wait, it.until) for it in joins.values()]
        joined = runs.join(tx, to_join, at_once=True)
        for one, it in joins.items():
            if it.taker.run not in joined:
                one.becomes = LeftOut.LOCKED


def _begin(tx: Tx, members: Sequence[_Member]) -> None:
    """Make the new runs."""
    new = {one: one.becomes for one in members if isinstance(one.becomes, NewRun)}
    if new:
        made = runs.create(tx, list(new.values()))
        for one in new:
            one.run = made[one.here.id]


def _store(tx: Tx, rt: Runtime, members: Sequence[_Member]) -> None:
    """Store the messages that are new, each with its run, or with the reason for having none."""
    new = [one for one in members if not isinstance(one.becomes, LeftOut | _Known)]
    if not new:
        return
    rows = inbox.store_messages(tx, [_new_message(one) for one in new])
    for one, stored in zip(new, rows, strict=True):
        one.stored = stored
        if not one.message.sender.is_bot:
            one.chat = heard(rt, one.here, one.message, one.now)
    chats.heard(tx, [one.here for one in new if not one.message.sender.is_bot])


def _new_message(one: _Member) -> NewMessage:
    run = one.run.id if one.run is not None else None
    if isinstance(one.becomes, _Join):
        run = one.becomes.taker.run
    ignored = one.becomes if isinstance(one.becomes, Unanswered) else None
    came = one.entry.arrival
    return NewMessage(came.account, one.here.id, one.message, came.body, run, ignored)


def _outcome(entry: Entry, one: _Member | None) -> Recorded | LeftOut:
    if one is None:
        return Recorded(Became.IGNORED) if isinstance(entry.event, Ignored) else LeftOut.ALONE
    match one.becomes:
        case LeftOut() as left:
            return left
        case _Known():
            return Recorded(Became.DUPLICATE)
        case Unanswered():
            return Recorded(Became.IGNORED)
        case _Join(taker):
            # A worker that looked just now skipped the run, which was locked.
            return Recorded(Became.JOINED, wake=taker.ready)
        case NewRun():
            assert one.run is not None
            assert one.stored is not None
            run = one.run
            running = run.state is RunState.RUNNING
            case = case_of(run, one.here, [one.stored], one.now) if running else None
            return Recorded(Became.RUN, run, case, wake=run.state is RunState.READY)
        case other:
            assert_never(other)
