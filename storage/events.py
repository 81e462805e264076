"""The audit trail: who moved what, when and why. Append only."""

from __future__ import annotations

from sqlalchemy import Connection, insert

from storage.clock import now
from storage.tables import events


def note(
    tx: Connection,
    who: str,
    what: str,
    why: str = "",
    *,
    run: int | None = None,
    chat: int | None = None,
) -> None:
    """Append one event. `why` never holds message text or whole phone numbers."""
    tx.execute(insert(events).values(run=run, chat=chat, at=now, who=who, what=what, why=why))
