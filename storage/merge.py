"""Two chats become one: everything of the younger moves to the older. Both are locked."""

from __future__ import annotations

from sqlalchemy import Connection, case, exists, select, update

from storage.clock import now
from storage.tables import chat_addresses, chats, events, inbound, outbox, reminders, runs


def move_all(tx: Connection, gone: int, kept: int) -> None:
    """Move addresses, messages, runs, parts and events. A second head steps back: a ready one
    waits; what runs in the older chat finishes first; what runs in the younger one is released,
    because its worker knows it under a chat that is no more. That chat's row stays, under an
    address that nobody has, for whoever still looks at it."""
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
    tx.execute(
        update(chats).where(chats.c.id == gone).values(address=f"merged:{gone}", merged_into=kept)
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
    rival = runs.alias("rival")
    busy = exists(select(1).where(rival.c.chat == kept, rival.c.state == "running"))
    tx.execute(
        update(runs)
        .where(runs.c.chat == gone, runs.c.state == "running")
        .values(
            state=case((busy, "waiting"), else_="ready"),
            holder=None,
            lane=False,
            fence=runs.c.fence + 1,
            idle_since=now,
        )
    )
