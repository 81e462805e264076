"""Replies: what agents returned, kept before anything of it is sent, and never asked for again."""

from __future__ import annotations

import sqlalchemy as sa

from storage.engine.binds import RUN_ID
from storage.engine.chat_rows import Blank
from storage.engine.clock import now
from storage.engine.insert import InsertOrSkip
from storage.engine.tx import Tx
from storage.schema.tables import replies

_STORE = InsertOrSkip(replies, replies.c.run, stored_at=now)
_STORED = sa.select(replies.c.text, replies.c.body).where(replies.c.run == RUN_ID)


def store(tx: Tx, run: int, text: str, body: str, attempt: int) -> None:
    """Keep a run's reply, its text and its JSON. The first one stays: a commit whose answer
    was lost is made once more. The run is held."""
    _STORE.run(tx, {"run": run, "text": text, "body": body, "attempt": attempt})


def stored(tx: Tx, run: int) -> tuple[str, str] | None:
    """(text, body) of the run's reply, or None."""
    row = tx.execute(_STORED, {"run_id": run}).first()
    return None if row is None else (row.text, row.body)


blank = Blank(replies, replies.c.run)
