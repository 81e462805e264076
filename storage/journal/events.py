"""Events: appended under the chat's lock, read by their numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from bot.domain.clients.journal import SAID, ChatEvent, EventKind, NewEvent, interleaved
from bot.domain.delivery import PartState
from bot.domain.ending import Ending, TurnStatus, status_of
from bot.domain.message import Attachment, InboundKind
from bot.domain.reply import PartKind
from bot.domain.run import RunState
from storage.schema.tables import followed, inbound, journal, outbox, runs, shown
from storage.statements.binds import AT_MOST, CHAT_ID, GONE, KEPT, PART_ID, SECONDS
from storage.statements.chat_rows import AT_ONCE, MoveChat
from storage.statements.clock import now
from storage.statements.insert import insert_rows
from storage.statements.literals import is_in, word
from storage.statements.sets import Rows, among
from storage.statements.tx import Row, Tx

_N = sa.bindparam("number", type_=sa.BigInteger)
_first = insert(followed).values(chat=CHAT_ID, n=_N)
_ADVANCE = _first.on_conflict_do_update(
    index_elements=[followed.c.chat], set_={"n": followed.c.n + _first.excluded.n}
).returning(followed.c.n)
_new = Rows(
    "new",
    chat=sa.BigInteger(),
    n=sa.BigInteger(),
    kind=sa.Text(),
    message=sa.BigInteger(),
    part=sa.BigInteger(),
    status=sa.Text(),
    ending=sa.Text(),
)
_APPEND = insert_rows(journal, _new, at=now)


def append(tx: Tx, chat: int, events: Sequence[NewEvent]) -> int:
    """Append events to the journal of a chat that is locked; returns the last number."""
    last = int(tx.scalars(_ADVANCE, {"chat_id": chat, "number": len(events)}).one())
    rows = (
        (chat, n, event.kind, event.message, event.part, event.status, event.ending)
        for n, event in enumerate(events, last - len(events) + 1)
    )
    tx.later(_APPEND, _new.of(rows))
    return last


_HEADS = sa.select(followed.c.chat, followed.c.n).where(among(followed.c.chat, "chat_ids"))


def heads(tx: Tx, chats: Sequence[int]) -> Mapping[int, int]:
    """The numbers of the last events of these chats; one without a journal is left out."""
    return {row.chat: row.n for row in tx.execute(_HEADS, {"chat_ids": list(chats)})}


def head(tx: Tx, chat: int) -> int:
    """The number of the chat's last event; 0 before the first."""
    return heads(tx, [chat]).get(chat, 0)


_newest = (
    sa.select(inbound.c.request_id)
    .where(inbound.c.run == outbox.c.run, inbound.c.kind != word(InboundKind.REMINDER))
    .order_by(inbound.c.id.desc())
    .limit(sa.literal_column("1"))
    .correlate(outbox)
    .scalar_subquery()
)


def _events(of: sa.FromClause) -> sa.Select[Any]:
    """Events of the journal, or of a part of it, with what they are about."""
    return sa.select(
        of.c.n,
        of.c.kind,
        of.c.at,
        sa.func.coalesce(inbound.c.request_id, _newest, "").label("request_id"),
        sa.func.coalesce(inbound.c.text, outbox.c.text, "").label("text"),
        of.c.status,
        of.c.ending,
        inbound.c.run,
        runs.c.state,
        runs.c.ending.label("ends"),
        of.c.part,
        outbox.c.kind.label("part_kind"),
        outbox.c.wire,
        inbound.c.button,
        inbound.c.attachments,
    ).select_from(
        of.outerjoin(inbound, inbound.c.id == of.c.message)
        .outerjoin(runs, runs.c.id == inbound.c.run)
        .outerjoin(outbox, outbox.c.id == of.c.part)
    )


_since = Rows("since", chat=sa.BigInteger(), n=sa.BigInteger())
_behind = (
    sa.select(journal)
    .select_from(
        _since.join(journal, sa.and_(journal.c.chat == _since.c.chat, journal.c.n > _since.c.n))
    )
    .cte("behind")
    # By itself: PostgreSQL would read all journals from the first, in order, to be spared a sort.
    .prefix_with("MATERIALIZED")
)
_AFTER = (
    _events(_behind)
    .add_columns(_behind.c.chat)
    .order_by(_behind.c.chat, _behind.c.n)
    .limit(AT_MOST)
)
_BEFORE = (
    _events(journal)
    .where(
        journal.c.chat == CHAT_ID,
        is_in(journal.c.kind, *SAID),
        journal.c.n < _N,
        # Accepted once more, it is no new message.
        sa.or_(journal.c.kind != word(EventKind.ACCEPTED), journal.c.status.is_(None)),
        # Whose words were deleted is no conversation any more.
        sa.func.coalesce(inbound.c.text, outbox.c.text, "") != "",
    )
    .order_by(journal.c.n.desc())
    .limit(AT_MOST)
)


def _event(row: Row) -> ChatEvent:
    kind, status = EventKind(row.kind), row.status and TurnStatus(row.status)
    ending = row.ending and Ending(row.ending)
    if kind is EventKind.ACCEPTED:
        ending = row.ends and Ending(row.ends)
        status = TurnStatus.COMPLETED if row.run is None else status_of(ending)
    return ChatEvent(
        n=row.n,
        kind=kind,
        at=row.at,
        request_id=row.request_id,
        text=row.text,
        status=status,
        ending=ending,
        queued=row.state in (RunState.WAITING, RunState.READY),
        part=row.part,
        part_kind=row.part_kind and PartKind(row.part_kind),
        wire=row.wire or "",
        button=row.button or "",
        attachments=tuple(Attachment(**file) for file in json.loads(row.attachments or "[]")),
    )


def after(tx: Tx, since: Mapping[int, int], limit: int) -> Mapping[int, Sequence[ChatEvent]]:
    """The events of these chats behind a number of each, in order."""
    found: dict[int, list[ChatEvent]] = {}
    for row in tx.execute(_AFTER, _since.of(since.items()) | {"at_most": limit}):
        found.setdefault(row.chat, []).append(_event(row))
    return found


def before(tx: Tx, chat: int, n: int, limit: int) -> Sequence[ChatEvent]:
    """The newest words of both sides before this number, oldest first."""
    asked = {"chat_id": chat, "number": n, "at_most": limit}
    return [_event(row) for row in tx.execute(_BEFORE, asked)][::-1]


@dataclass(frozen=True, slots=True)
class Part:
    """A part as the journal takes it: where it goes, what it is, whether it is there already."""

    chat: int
    run: int | None
    kind: PartKind
    number: int
    leaving: bool
    written: bool


_HAS_PART = sa.exists(sa.select(1).where(journal.c.part == PART_ID))
_PART = sa.select(
    outbox.c.chat,
    outbox.c.run,
    outbox.c.kind,
    outbox.c.part,
    sa.and_(
        is_in(outbox.c.state, PartState.SENDING), outbox.c.attempts == sa.bindparam("attempt")
    ).label("leaving"),
    _HAS_PART.label("written"),
).where(outbox.c.id == PART_ID)


def part_of(tx: Tx, part: int, attempt: int) -> Part | None:
    """The part of this attempt; `leaving` says that the attempt is the one under way. It can be
    told for certain only while its chat is locked."""
    row = tx.execute(_PART, {"part_id": part, "attempt": attempt}).first()
    if row is None:
        return None
    kind = PartKind(row.kind)
    return Part(row.chat, row.run, kind, row.part, bool(row.leaving), bool(row.written))


def exists(tx: Tx, part: int) -> bool:
    """Tell whether the part is in a journal."""
    return bool(tx.scalar(sa.select(_HAS_PART), {"part_id": part}))


_SEE = (
    sa.update(followed)
    .where(followed.c.chat == CHAT_ID, followed.c.seen < _N)
    .values(seen=sa.case((followed.c.n < _N, followed.c.n), else_=_N))
)
_UNREAD = (
    sa.select(sa.func.count())
    .select_from(journal.join(followed, followed.c.chat == journal.c.chat))
    .where(
        journal.c.chat == CHAT_ID,
        journal.c.n > followed.c.seen,
        is_in(journal.c.kind, *SAID),
        is_in(journal.c.kind, EventKind.MESSAGE),
    )
)


def see(tx: Tx, chat: int, n: int) -> None:
    """Everything up to this number was shown to the person; it only goes up."""
    tx.execute(_SEE, {"chat_id": chat, "number": n})


def unread(tx: Tx, chat: int) -> int:
    """The number of our messages that nobody has seen."""
    return int(tx.scalars(_UNREAD, {"chat_id": chat}).one())


_old = (
    sa.select(journal.c.chat, journal.c.n)
    .where(journal.c.at < now - SECONDS)
    .order_by(journal.c.at)
    .limit(sa.literal_column(str(AT_ONCE)))
    .subquery("old")
)
_PRUNE = sa.delete(journal).where(
    sa.tuple_(journal.c.chat, journal.c.n).in_(sa.select(_old.c.chat, _old.c.n))
)


def prune(tx: Tx, older: float) -> bool:
    """Delete a page of events older than so many seconds. True: there may be more."""
    return tx.execute(_PRUNE, {"seconds": older}).rowcount == AT_ONCE


# Milliseconds: of two restores of one backup, the second begins beyond the life of the first.
_GAP = sa.update(followed).values(n=followed.c.n + sa.cast(now * 1000, sa.BigInteger))


def leave_gap(tx: Tx) -> None:
    """Let every journal go on behind a gap that no number of an old database's later life fills,
    nor of what came from the same backup before: whoever followed it is told to begin with a
    snapshot."""
    tx.execute(_GAP)


_BOTH = (
    sa.select(journal.c.chat, journal.c.n, journal.c.at, journal.c.kind)
    .where(journal.c.chat.in_([GONE, KEPT]))
    .order_by(journal.c.chat, journal.c.n)
)
_SEEN = sa.select(followed.c.chat, followed.c.n, followed.c.seen).where(
    followed.c.chat.in_([GONE, KEPT])
)
_moved = Rows("moved", chat=sa.BigInteger(), n=sa.BigInteger(), to_n=sa.BigInteger())
_RENUMBER = (
    sa.update(journal)
    .where(journal.c.chat == _moved.c.chat, journal.c.n == _moved.c.n)
    .values(chat=KEPT, n=_moved.c.to_n)
)
_FORGET = sa.delete(followed).where(followed.c.chat.in_([GONE, KEPT]))
_REMEMBER = insert(followed).values(
    chat=KEPT, n=_N, seen=sa.bindparam("seen_n", type_=sa.BigInteger)
)
_MOVE_SHOWN = MoveChat(shown, shown.c.chat)


def merge(tx: Tx, gone: int, kept: int) -> None:
    """One journal of two, in the order of their times. All numbers are new ones, behind a gap:
    whoever followed either is told to begin with a snapshot."""
    both = {"gone": gone, "kept": kept}
    marks = {row.chat: row for row in tx.execute(_SEEN, both)}
    if gone not in marks:
        return
    rows = tx.execute(_BOTH, both).all()
    told = [[(row.at, at) for at, row in enumerate(rows) if row.chat == c] for c in (kept, gone)]
    base = max(mark.n for mark in marks.values()) + 1
    numbered = {row: n for n, row in enumerate(interleaved(told), base + 1)}
    last = base + max(len(rows), 1)
    unseen = [
        n
        for at, n in numbered.items()
        if rows[at].kind == EventKind.MESSAGE and rows[at].n > marks[rows[at].chat].seen
    ]
    moves: list[tuple[Any, ...]] = [(rows[at].chat, rows[at].n, n) for at, n in numbered.items()]
    tx.execute(_RENUMBER, both | _moved.of(moves))
    tx.execute(_FORGET, both)
    tx.execute(_REMEMBER, both | {"number": last, "seen_n": min(unseen, default=last + 1) - 1})
    _MOVE_SHOWN(tx, gone, kept)
