"""Replies: what agents returned, kept before anything of it is sent, and never asked for again."""

from __future__ import annotations

import sqlalchemy as sa

from storage.engine.clock import now
from storage.engine.insert import InsertOrSkip
from storage.engine.pages import in_page, page_end
from storage.engine.tx import Tx
from storage.schema.tables import replies, runs

_STORE = InsertOrSkip(replies, replies.c.run, stored_at=now)
_STORED = sa.select(replies.c.text, replies.c.body).where(replies.c.run == sa.bindparam("run_id"))


def store(tx: Tx, run: int, text: str, body: str, attempt: int) -> None:
    """Keep a run's reply, its text and its JSON. The first one stays: a commit whose answer
    was lost is made once more. The run is held."""
    _STORE.run(tx, {"run": run, "text": text, "body": body, "attempt": attempt})


def stored(tx: Tx, run: int) -> tuple[str, str] | None:
    """(text, body) of the run's reply, or None."""
    row = tx.execute(_STORED, {"run_id": run}).first()
    return None if row is None else (row.text, row.body)


_OF_CHAT = runs.c.chat == sa.bindparam("chat_id")
_PAGE = page_end(runs.c.id, _OF_CHAT)
_BLANK = (
    sa.update(replies)
    .where(replies.c.run.in_(sa.select(runs.c.id).where(_OF_CHAT, in_page(runs.c.id))))
    .values(text="", body="{}")
)


def forget(tx: Tx, chat: int, after: int, until: int) -> int | None:
    """Take the words out of the replies of a page of the chat's runs, from id `after` to `until`;
    returns the last id, or None when there were no more."""
    last: int | None = tx.scalar(_PAGE, {"chat_id": chat, "after": after, "until": until})
    if last is not None:
        tx.execute(_BLANK, {"chat_id": chat, "after": after, "last": last})
    return last
