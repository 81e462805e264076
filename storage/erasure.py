"""Erasure: taking the words out of one chat, a page of rows at a time.

The order of the pages is that of the ids, up to those that were the newest when it was asked for:
what comes meanwhile is not meant. Which columns hold words is one table
(`storage/schema/tables/words.py`); a table of it that names its chat, and that no page here takes,
is emptied by itself, so a new one needs nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import sqlalchemy as sa

from storage import audit_log, chats, files, inbox, outbox, reminders, runs, steps
from storage.schema.tables import Watched, events, inbound
from storage.schema.tables import chats as chat_rows
from storage.schema.tables import outbox as outbox_rows
from storage.schema.tables import reminders as reminder_rows
from storage.schema.tables import runs as run_rows
from storage.schema.tables.words import WORDS
from storage.statements.binds import CHAT_ID
from storage.statements.chat_rows import Mark, Page
from storage.statements.literals import is_in
from storage.statements.sets import among
from storage.statements.tx import Tx
from storage.views.chats import LastIds

Step = Callable[[Tx, int, Mark], Mark | None]
"""Empties the next page of a chat behind a mark; returns the mark of its last row, or None when
there were no more."""

_IN_PAGES = (inbound, outbox_rows, run_rows, events)
_BY_THEMSELVES = (chat_rows, reminder_rows)
_REST = [
    sa.update(table).where(table.c.chat == CHAT_ID).values(**words)
    for table, words in WORDS.items()
    if "chat" in table.c and table not in (*_IN_PAGES, *_BY_THEMSELVES)
]

_OF_LIVE = sa.select(
    sa.exists(
        sa.select(1).where(
            among(inbound.c.run, "run_ids"),
            inbound.c.id <= sa.bindparam("last_message", type_=sa.BigInteger),
        )
    )
)
_ON_THE_WAY = sa.select(
    sa.exists(
        sa.select(1).where(
            outbox_rows.c.chat == CHAT_ID,
            is_in(outbox_rows.c.watched, Watched.DUE, Watched.LEAVING),
            outbox_rows.c.id <= sa.bindparam("last_part", type_=sa.BigInteger),
        )
    )
)


def in_use(tx: Tx, chat: int, until: LastIds) -> bool:
    """Tell whether some of these words are still worked on, or on their way."""
    live = [run.id for run in runs.live_in_chat(tx, chat)]
    if live and tx.scalar(_OF_LIVE, {"run_ids": live, "last_message": until.message}):
        return True
    return bool(tx.scalar(_ON_THE_WAY, {"chat_id": chat, "last_part": until.part}))


def steps_of(until: LastIds) -> Sequence[Step]:
    """All pages of a chat, table by table. Each locks the chat."""
    return (
        partial(_page, inbox.page, inbox.blank, until.message),
        partial(_page, outbox.page, _blank_parts, until.part),
        partial(_page, runs.page, _blank_runs, until.run),
        partial(_page, audit_log.page, audit_log.blank, until.event),
        partial(_payloads_naming, until.payload),
    )


def finish(tx: Tx, chat: int) -> None:
    """Take the words out of the rows that a chat has few of: its own, its files, its reminders, and
    whatever else names it. The chat is locked."""
    chats.forget(tx, chat)
    files.forget(tx, chat)
    reminders.forget(tx, chat)
    for blank in _REST:
        tx.execute(blank, {"chat_id": chat})


def _page(
    page: Page,
    blank: Callable[[Tx, Sequence[int]], None],
    until: int,
    tx: Tx,
    chat: int,
    after: Mark,
) -> Mark | None:
    chats.lock(tx, chat)
    rows = page(tx, chat, after, until)
    blank(tx, [row for _, row in rows])
    return rows[-1] if rows else None


def _blank_parts(tx: Tx, ids: Sequence[int]) -> None:
    outbox.stop_looking(tx, ids)
    outbox.blank(tx, ids)


def _blank_runs(tx: Tx, ids: Sequence[int]) -> None:
    for blank in (steps.blank, runs.blank, audit_log.blank_of_runs):
        blank(tx, ids)


def _payloads_naming(until: int, tx: Tx, chat: int, after: Mark) -> Mark | None:
    """The same for payloads that are no message's, but name an address of the chat."""
    account = chats.get(tx, chat).account
    names = {address.chat for address in chats.addresses(tx, chat)}
    last = inbox.blank_naming(tx, account, names, after[1], until)
    return None if last is None else (0, last)
