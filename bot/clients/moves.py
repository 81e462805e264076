"""The transactions of clients: a part is written, a chat is brought up to date and read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bot.domain.clients.desk import Page
from bot.domain.clients.journal import ChatEvent, NewEvent, Snapshot, told_as
from bot.domain.message import Address
from bot.domain.ports import SendRef
from storage import chats, journal
from storage.outbox import Notice
from storage.statements.tx import Tx

LATEST = 50
"""Messages of a snapshot."""
AT_ONCE = 1_000
"""Events that are told one by one; who missed more is given a snapshot."""
_END = 1 << 62


def write_part(tx: Tx, ref: SendRef) -> int | None:
    """Write a part into its chat's journal, behind what its messages have come to; returns the
    chat, or None when the attempt is not under way any more."""
    part = journal.part_of(tx, ref.part, ref.attempt)
    if part is None:
        return None
    chat = chats.lock(tx, part.chat).id
    part = journal.part_of(tx, ref.part, ref.attempt)  # Read again, under the chat's lock.
    assert part is not None
    if part.written:
        return chat
    if not part.leaving:
        return None
    journal.project(tx, chat)
    still_working = part.run is not None and part.number == Notice.STILL_WORKING
    kind = told_as(part.kind, still_working=still_working)
    journal.append(tx, chat, [NewEvent(kind, part=ref.part)])
    return chat


def is_written(tx: Tx, ref: SendRef) -> bool:
    """Tell whether the part is in its chat's journal. A commit that is under way is awaited."""
    part = journal.part_of(tx, ref.part, ref.attempt)
    if part is None:
        return False
    chats.lock(tx, part.chat)
    return journal.exists(tx, ref.part)


def stands(tx: Tx, account: int, who: Address) -> tuple[int | None, bool]:
    """The chat at this address, None before its first message, and whether its journal lacks
    something."""
    chat = chats.locate(tx, account, [who])
    return chat, chat is not None and bool(journal.lacking(tx, [chat]))


def project(tx: Tx, chat: int) -> None:
    """Bring this journal up to date."""
    journal.project(tx, chats.lock(tx, chat).id)


def project_each(tx: Tx, of: Sequence[int]) -> Sequence[int]:
    """Bring these journals up to date, without waiting for anybody; returns those of the chats
    that somebody has locked."""
    locked, _ = chats.lock_each(tx, of)
    for chat in sorted(locked):
        journal.project(tx, chat)
    return [chat for chat in of if chat not in locked]


def snapshot(tx: Tx, chat: int) -> Snapshot | None:
    """The chat as it is now; None where its journal lacks something. Read at one moment."""
    if journal.lacking(tx, [chat]):
        return None
    said = journal.before(tx, chat, _END, LATEST + 1)
    return Snapshot(
        n=journal.head(tx, chat),
        messages=said[-LATEST:],
        more=len(said) > LATEST,
        open=journal.open_turns(tx, chat),
        unread=journal.unread(tx, chat),
    )


def history(tx: Tx, chat: int, before: int | None, limit: int) -> Page:
    """A page of what was said."""
    said = journal.before(tx, chat, before or _END, limit + 1)
    return Page(said[-limit:], more=len(said) > limit)


def see(tx: Tx, account: int, who: Address, n: int) -> int:
    """Everything up to this event was shown; returns how many of our messages nobody has seen."""
    chat = chats.locate(tx, account, [who])
    if chat is None:
        return 0
    chat = chats.lock(tx, chat).id
    journal.see(tx, chat, n)
    return journal.unread(tx, chat)


def since(tx: Tx, chat: int, n: int) -> Sequence[ChatEvent] | None:
    """The events of a chat behind this number; None where they are not all there, or too many: a
    number that the chat never had, one from before it became part of another, old ones."""
    told = journal.after(tx, {chat: n}, AT_ONCE + 1).get(chat, ())
    goes_on = told[0].n == n + 1 if told else journal.head(tx, chat) == n
    return told if goes_on and len(told) <= AT_ONCE else None


@dataclass(frozen=True, slots=True)
class Look:
    """The news of chats that are followed: events, journals that lack something, chats that
    became part of others, and first chats of addresses."""

    events: Mapping[int, Sequence[ChatEvent]]
    lacking: Sequence[int]
    merged: Collection[int]
    begun: Mapping[Address, int]
    more: bool


def look(tx: Tx, account: int, after: Mapping[int, int], waiting: Sequence[Address]) -> Look:
    """Look at the chats behind a number of each, and at addresses that had none."""
    events = journal.after(tx, after, AT_ONCE) if after else {}
    return Look(
        events=events,
        lacking=sorted(journal.lacking(tx, list(after))) if after else (),
        merged=chats.merged_of(tx, list(after)) if after else (),
        begun=chats.locate_each(tx, account, waiting) if waiting else {},
        more=sum(map(len, events.values())) == AT_ONCE,
    )
