"""The audit trail: every move with its author, time and reason. Append only, until it is old:
then it goes, and the reasons of a forgotten chat go at once."""

from __future__ import annotations

import sqlalchemy as sa

from storage.engine.binds import SECONDS
from storage.engine.chat_rows import AT_ONCE, Blank, MoveChat, Page
from storage.engine.clock import now
from storage.engine.sets import within
from storage.engine.tx import Tx
from storage.schema.tables import events

_NOTE = sa.insert(events).values(at=now)


def note(
    tx: Tx, who: str, what: str, why: str = "", *, run: int | None = None, chat: int | None = None
) -> None:
    """Append one event. `why` never holds message text or whole phone numbers."""
    tx.execute(_NOTE, {"run": run, "chat": chat, "who": who, "what": what, "why": why})


page = Page(events)
blank = Blank(events, events.c.id)
blank_of_runs = Blank(events, events.c.run)

_DROP_OLD = sa.delete(events).where(
    within(
        events.c.id,
        sa.select(events.c.id)
        .where(events.c.at < now - SECONDS)
        .order_by(events.c.at)
        .limit(sa.literal_column(str(AT_ONCE))),
    )
)


def drop_old(tx: Tx, older: float) -> bool:
    """Delete some events of more than `older` seconds ago. True: there may be more."""
    return tx.execute(_DROP_OLD, {"seconds": older}).rowcount == AT_ONCE


merge = MoveChat(events, events.c.chat)
move_run = MoveChat(events, events.c.run)
