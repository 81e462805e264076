"""The messages of a chat in its journal: shown so far, and what is lacking."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from bot.domain.clients.journal import MessageFacts, OpenTurn, Shown, news
from bot.domain.ending import Ending
from bot.domain.message import InboundKind
from bot.domain.reply import PartKind
from bot.domain.run import RunState
from storage.journal.events import append
from storage.runs.rows import OPEN
from storage.schema.tables import chats, inbound, journal, outbox, runs, shown
from storage.statements.binds import CHAT_ID
from storage.statements.insert import insert_rows
from storage.statements.literals import is_not, word
from storage.statements.sets import Rows, among
from storage.statements.tx import Row, Tx

_COLUMNS = (
    inbound.c.chat,
    inbound.c.id.label("message"),
    runs.c.state,
    runs.c.ending,
    shown.c.state.label("was_shown"),
)
_FROM_A_PERSON = inbound.c.kind != word(InboundKind.REMINDER)
_of_run = sa.select(*_COLUMNS).select_from(
    runs.join(inbound, inbound.c.run == runs.c.id).outerjoin(shown, shown.c.message == inbound.c.id)
)
_live = [_of_run.where(among(runs.c.chat, "chat_ids"), state, _FROM_A_PERSON) for state in OPEN]
_open = (
    sa.select(*_COLUMNS)
    .select_from(
        shown.join(inbound, inbound.c.id == shown.c.message).outerjoin(
            runs, runs.c.id == inbound.c.run
        )
    )
    .where(among(shown.c.chat, "chat_ids"), is_not(shown.c.state, Shown.OVER))
)
_UNENDED = sa.union(*_live, _open)
_newest = (
    sa.select(inbound.c.id)
    .where(inbound.c.chat == chats.c.id, _FROM_A_PERSON)
    .order_by(inbound.c.received_at.desc())
    .limit(sa.literal_column("1"))
    .correlate(chats)
    .scalar_subquery()
)
_BEHIND = sa.select(chats.c.id).where(
    among(chats.c.id, "chat_ids"),
    _newest.is_not(None),
    ~sa.exists(sa.select(1).where(shown.c.message == _newest)),
)


def lacking(tx: Tx, of: Sequence[int]) -> frozenset[int]:
    """Those of these chats whose journal lacks something: of a message that was not over, or of
    the newest one."""
    asked = {"chat_ids": list(of)}
    moved = {row.chat for row in tx.execute(_UNENDED, asked) if news(_fact(row))}
    return frozenset(moved.union(tx.scalars(_BEHIND, asked)))


_last = shown.alias("last")
_of_last = inbound.alias("of_last")
_last_shown = (
    sa.select(_of_last.c.received_at)
    .where(
        _of_last.c.id
        == sa.select(sa.func.max(_last.c.message)).where(_last.c.chat == CHAT_ID).scalar_subquery()
    )
    .scalar_subquery()
)
_later = (
    sa.select(*_COLUMNS)
    .select_from(
        inbound.outerjoin(runs, runs.c.id == inbound.c.run).outerjoin(
            shown, shown.c.message == inbound.c.id
        )
    )
    .where(
        inbound.c.chat == CHAT_ID,
        inbound.c.received_at >= sa.func.coalesce(_last_shown, 0.0),
        shown.c.message.is_(None),
        _FROM_A_PERSON,
    )
)
_all = sa.union(*_live, _open, _later).subquery("facts")
_FACTS = sa.select(*_all.c).order_by(_all.c.message)


def _fact(row: Row) -> MessageFacts:
    return MessageFacts(
        row.message,
        row.state and RunState(row.state),
        row.ending and Ending(row.ending),
        row.was_shown and Shown(row.was_shown),
    )


_states = Rows("states", message=sa.BigInteger(), chat=sa.BigInteger(), state=sa.Text())
_put = insert_rows(shown, _states)
_SHOW = _put.on_conflict_do_update(
    index_elements=[shown.c.message], set_={"state": _put.excluded.state}
)


def project(tx: Tx, chat: int) -> int | None:
    """Append what the journal of this chat lacks about its messages; returns the last number, or
    None when it lacks nothing. The chat is locked."""
    rows = tx.execute(_FACTS, {"chat_ids": [chat], "chat_id": chat})
    told = [(fact, news(fact)) for fact in map(_fact, rows)]
    events = [event for _, lacks in told for event in lacks]
    if not events:
        return None
    last = append(tx, chat, events)
    states = ((fact.message, chat, fact.now.value) for fact, lacks in told if lacks)
    tx.execute(_SHOW, _states.of(states))
    return last


_answering = sa.exists(
    sa.select(1)
    .select_from(outbox.join(journal, journal.c.part == outbox.c.id))
    .where(outbox.c.run == inbound.c.run, is_not(outbox.c.kind, PartKind.NOTICE))
    .correlate(inbound)
)
_OPEN_TURNS = (
    sa.select(inbound.c.request_id, shown.c.state, _answering.label("answering"))
    .join(inbound, inbound.c.id == shown.c.message)
    .where(shown.c.chat == CHAT_ID, is_not(shown.c.state, Shown.OVER))
    .order_by(shown.c.message)
)


def open_turns(tx: Tx, chat: int) -> Sequence[OpenTurn]:
    """The messages that are not answered yet, as the journal has shown them."""
    return [
        OpenTurn(row.request_id, row.state == Shown.ACCEPTED, bool(row.answering))
        for row in tx.execute(_OPEN_TURNS, {"chat_id": chat})
    ]
