"""The audit trail: who moved what, when and why. Append only."""

from __future__ import annotations

import sqlalchemy as sa

from storage.engine.clock import now
from storage.engine.tx import Tx
from storage.schema.tables import events

_NOTE = sa.insert(events).values(at=now)
_MOVE = sa.update(events).values(chat=sa.bindparam("to_chat"))
_MOVE_RUN = _MOVE.where(events.c.run == sa.bindparam("run_id"))
_MOVE_CHAT = _MOVE.where(events.c.chat == sa.bindparam("from_chat"))


def note(
    tx: Tx, who: str, what: str, why: str = "", *, run: int | None = None, chat: int | None = None
) -> None:
    """Append one event. `why` never holds message text or whole phone numbers."""
    tx.execute(_NOTE, {"run": run, "chat": chat, "who": who, "what": what, "why": why})


def move_run(tx: Tx, run: int, chat: int) -> None:
    """Move the events of a run to the chat that it moved to."""
    tx.execute(_MOVE_RUN, {"run_id": run, "to_chat": chat})


def merge(tx: Tx, gone: int, kept: int) -> None:
    """Move the events of the chat `gone` to `kept`."""
    tx.execute(_MOVE_CHAT, {"from_chat": gone, "to_chat": kept})
