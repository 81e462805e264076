"""Two chats become one: everything of the younger moves to the older. Both are locked."""

from __future__ import annotations

from sqlalchemy import Connection, case, exists, select, update

from storage.tables import chat_addresses, chats, events, inbound, outbox, reminders, runs


def move_all(tx: Connection, gone: int, kept: int) -> None:
    """Move addresses, messages, runs, parts and events. A second head steps back: a ready one
    waits; a running one finishes first, and the ready head of the other waits for it."""
    _make_room(tx, gone, kept)
    for table in (inbound, outbox, runs, events, reminders):
        tx.execute(update(table).where(table.c.chat == gone).values(chat=kept))
    tx.execute(update(chat_addresses).where(chat_addresses.c.chat == gone).values(chat=kept))
    younger = select(chats.c.last_inbound_at).where(chats.c.id == gone).scalar_subquery()
    tx.execute(
        update(chats)
        .where(chats.c.id == kept)
        .values(
            last_inbound_at=case(
                (chats.c.last_inbound_at.is_(None), younger),
                (chats.c.last_inbound_at < younger, younger),
                else_=chats.c.last_inbound_at,
            )
        )
    )


def _make_room(tx: Connection, gone: int, kept: int) -> None:
    """At most one head may be left over both chats."""
    for chat, other in ((gone, kept), (kept, gone)):
        rival = runs.alias("rival")
        busy = exists(
            select(1).where(rival.c.chat == other, rival.c.state.in_(("ready", "running")))
        )
        tx.execute(
            update(runs)
            .where(runs.c.chat == chat, runs.c.state == "ready", busy)
            .values(state="waiting")
        )
    # Two that run at once: the younger chat's is released; its worker loses its grip.
    rival = runs.alias("rival")
    busy = exists(select(1).where(rival.c.chat == kept, rival.c.state == "running"))
    tx.execute(
        update(runs)
        .where(runs.c.chat == gone, runs.c.state == "running", busy)
        .values(state="waiting", holder=None, lane=False, fence=runs.c.fence + 1)
    )
