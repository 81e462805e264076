"""The messages of a chat in its journal: shown so far, and what is lacking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from bot.domain.ending import Ending
from bot.domain.journal import MessageFacts, OpenTurn, Shown, news
from bot.domain.message import InboundKind
from bot.domain.run import RunState
from storage.engine.binds import CHAT_ID
from storage.engine.insert import insert_rows
from storage.engine.literals import is_not, word
from storage.engine.sets import Rows, among
from storage.engine.tx import Tx
from storage.journal.events import append
from storage.schema.tables import chats, inbound, runs, shown

_COLUMNS = (
    inbound.c.chat,
    inbound.c.id.label("message"),
    runs.c.state,
    runs.c.ending,
    shown.c.state.label("was_shown"),
)
_FROM_A_PERSON = inbound.c.kind != word(InboundKind.REMINDER)
_live = (
    sa.select(*_COLUMNS)
    .select_from(
        runs.join(inbound, inbound.c.run == runs.c.id).outerjoin(
            shown, shown.c.message == inbound.c.id
        )
    )
    .where(among(runs.c.chat, "chat_ids"), is_not(runs.c.state, RunState.ENDED), _FROM_A_PERSON)
)
_open = (
    sa.select(*_COLUMNS)
    .select_from(
        shown.join(inbound, inbound.c.id == shown.c.message).outerjoin(
            runs, runs.c.id == inbound.c.run
        )
    )
    .where(among(shown.c.chat, "chat_ids"), is_not(shown.c.state, Shown.OVER))
)
_newest = shown.alias("newest")
_of_newest = inbound.alias("of_newest")
_last_shown = (
    sa.select(_of_newest.c.received_at)
    .where(
        _of_newest.c.id
        == sa.select(sa.func.max(_newest.c.message))
        .where(_newest.c.chat == chats.c.id)
        .correlate(chats)
        .scalar_subquery()
    )
    .correlate(chats)
    .scalar_subquery()
)
_later = (
    sa.select(*_COLUMNS)
    .select_from(
        chats.join(
            inbound,
            sa.and_(
                inbound.c.chat == chats.c.id,
                inbound.c.received_at >= sa.func.coalesce(_last_shown, 0.0),
            ),
        )
        .outerjoin(runs, runs.c.id == inbound.c.run)
        .outerjoin(shown, shown.c.message == inbound.c.id)
    )
    .where(among(chats.c.id, "chat_ids"), shown.c.message.is_(None), _FROM_A_PERSON)
)
_all = sa.union(_live, _open, _later).subquery("facts")
_FACTS = sa.select(*_all.c).order_by(_all.c.message)


def facts(tx: Tx, of: Sequence[int]) -> Mapping[int, Sequence[MessageFacts]]:
    """The messages of these chats of which something may have to be shown, in their order."""
    found: dict[int, list[MessageFacts]] = {}
    for row in tx.execute(_FACTS, {"chat_ids": list(of)}):
        fact = MessageFacts(
            row.message,
            row.state and RunState(row.state),
            row.ending and Ending(row.ending),
            row.was_shown and Shown(row.was_shown),
        )
        found.setdefault(row.chat, []).append(fact)
    return found


_states = Rows("states", message=sa.BigInteger(), chat=sa.BigInteger(), state=sa.Text())
_put = insert_rows(shown, _states)
_SHOW = _put.on_conflict_do_update(
    index_elements=[shown.c.message], set_={"state": _put.excluded.state}
)


def project(tx: Tx, chat: int) -> int | None:
    """Append what the journal of this chat lacks about its messages; returns the last number, or
    None when it lacks nothing. The chat is locked."""
    told = [(fact, news(fact)) for fact in facts(tx, [chat]).get(chat, ())]
    events = [event for _, lacking in told for event in lacking]
    if not events:
        return None
    last = append(tx, chat, events)
    rows = [(fact.message, chat, fact.now.value) for fact, lacking in told if lacking]
    tx.execute(_SHOW, _states.of(rows))
    return last


_OPEN_TURNS = (
    sa.select(inbound.c.request_id, shown.c.state)
    .join(inbound, inbound.c.id == shown.c.message)
    .where(shown.c.chat == CHAT_ID, is_not(shown.c.state, Shown.OVER))
    .order_by(shown.c.message)
)


def open_turns(tx: Tx, chat: int) -> Sequence[OpenTurn]:
    """The messages that are not answered yet, as the journal has shown them."""
    return [
        OpenTurn(row.request_id, queued=row.state == Shown.ACCEPTED)
        for row in tx.execute(_OPEN_TURNS, {"chat_id": chat})
    ]
