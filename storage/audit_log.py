"""The audit trail: who moved what, when and why. Append only."""

from __future__ import annotations

import sqlalchemy as sa

from storage.engine.chat_rows import MoveChat
from storage.engine.clock import now
from storage.engine.tx import Tx
from storage.schema.tables import events

_NOTE = sa.insert(events).values(at=now)


def note(
    tx: Tx, who: str, what: str, why: str = "", *, run: int | None = None, chat: int | None = None
) -> None:
    """Append one event. `why` never holds message text or whole phone numbers."""
    tx.execute(_NOTE, {"run": run, "chat": chat, "who": who, "what": what, "why": why})


merge = MoveChat(events, events.c.chat)
move_run = MoveChat(events, events.c.run)
