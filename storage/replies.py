"""Replies: agents' answers, kept before anything of them is sent, and never asked for again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import sqlalchemy as sa

from storage.engine.binds import RUN_ID
from storage.engine.chat_rows import Blank
from storage.engine.clock import now
from storage.engine.insert import insert_rows
from storage.engine.sets import Rows
from storage.engine.tx import Tx
from storage.schema.tables import replies

_told = Rows("told", run=sa.BigInteger(), text=sa.Text(), body=sa.Text(), attempt=sa.Integer())
_known = sa.exists(sa.select(1).where(replies.c.run == _told.c.run))
_STORE = insert_rows(replies, _told, ~_known, stored_at=now)
_STORED = sa.select(replies.c.text, replies.c.body).where(replies.c.run == RUN_ID)


@dataclass(frozen=True, slots=True)
class NewReply:
    """The reply of an agent to a run: its text, and its JSON."""

    run: int
    text: str
    body: str
    attempt: int


def store(tx: Tx, run: int, text: str, body: str, attempt: int) -> None:
    """Keep a run's reply, its text and its JSON. The first one stays: a commit whose answer
    was lost is made once more. The run is held."""
    store_each(tx, [NewReply(run, text, body, attempt)])


def store_each(tx: Tx, told: Sequence[NewReply]) -> None:
    """As `store`, for several runs."""
    if told:
        tx.later(_STORE, _told.of(map(astuple, told)))


def stored(tx: Tx, run: int) -> tuple[str, str] | None:
    """(text, body) of the run's reply, or None."""
    row = tx.execute(_STORED, {"run_id": run}).first()
    return None if row is None else (row.text, row.body)


blank = Blank(replies, replies.c.run)
