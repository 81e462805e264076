"""The whole record of a chat, page by page: nothing of it is held in memory but one page and the
ids of its rows, by which it is ordered: a clock that was set back changes nothing in that.

Every function is to be read to its end within one transaction, so that all of it is of one moment.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from storage import audit_log, chats, inbox, outbox, runs
from storage.inbox import naming
from storage.schema.tables import (
    accounts,
    chat_addresses,
    data_requests,
    edits,
    events,
    files,
    inbound,
    metadata,
    payloads,
    receipts,
    reminders,
    steps,
    told,
)
from storage.schema.tables import chats as chat_rows
from storage.schema.tables import outbox as outbox_rows
from storage.schema.tables import runs as run_rows
from storage.schema.tables.words import WORDS
from storage.statements.binds import CHAT_ID
from storage.statements.chat_rows import AT_ONCE, START, Mark, Page
from storage.statements.sets import among
from storage.statements.tx import Tx
from storage.views.chats import last_ids

Found = dict[str, Any]
"""A row by the names of its columns."""

_CHAT = (
    sa.select(
        *(column for column in chat_rows.c if column is not chat_rows.c.account),
        accounts.c.channel,
        accounts.c.account,
    )
    .join(accounts, accounts.c.id == chat_rows.c.account)
    .where(chat_rows.c.id == CHAT_ID)
)
_MERGED = (
    sa.select(chat_rows.c.id).where(chat_rows.c.merged_into == CHAT_ID).order_by(chat_rows.c.id)
)
_ADDRESSES = (
    sa.select(chat_addresses.c.address, chat_addresses.c.topic)
    .where(chat_addresses.c.chat == CHAT_ID)
    .order_by(chat_addresses.c.address, chat_addresses.c.topic)
)
_FILES = (
    sa.select(*(files.c[name] for name in ("ref", "address", "name", "mime", "kept_at")))
    .join(chat_rows, chat_rows.c.account == files.c.account)
    .where(
        chat_rows.c.id == CHAT_ID,
        files.c.kept_at > 0,
        files.c.address.in_(
            sa.select(chat_addresses.c.address).where(chat_addresses.c.chat == CHAT_ID)
        ),
    )
    .order_by(files.c.kept_at, files.c.ref)
)


def chat(tx: Tx, number: int) -> Found:
    """The chat's own row, with its channel, the bot that it is with, and the chats that became part
    of it."""
    found = tx.execute(_CHAT, {"chat_id": number}).one()._asdict()
    return found | {"merged": tx.scalars(_MERGED, {"chat_id": number}).all()}


def addresses(tx: Tx, number: int) -> Sequence[Found]:
    """Every address under which the chat was known."""
    return _all(tx, _ADDRESSES, number)


def files_of(tx: Tx, number: int) -> Sequence[Found]:
    """The files that came from there and are kept, without their content."""
    return _all(tx, _FILES, number)


def _all(tx: Tx, question: sa.Select[Any], number: int) -> Sequence[Found]:
    return [row._asdict() for row in tx.execute(question, {"chat_id": number})]


class _Paged:
    """Rows of a table, found page by page, each with what else belongs to it."""

    def __init__(self, table: sa.Table, page: Page, **below: _Below) -> None:
        self._page = page
        self._rows = sa.select(table).where(among(table.c.id, "ids")).order_by(table.c.id)
        self._below = below

    def of(self, tx: Tx, number: int, until: int) -> Iterator[Found]:
        """The chat's rows up to this id, by their ids."""
        all_ids = array("q", sorted(self._ids(tx, number, until)))
        for begin in range(0, len(all_ids), AT_ONCE):
            ids = {"ids": list(all_ids[begin : begin + AT_ONCE])}
            rows = [row._asdict() for row in tx.execute(self._rows, ids)]
            for name, below in self._below.items():
                found = below.of(tx, ids)
                for row in rows:
                    row[name] = found.get(row["id"], [])
            yield from rows

    def _ids(self, tx: Tx, number: int, until: int) -> Iterator[int]:
        after: Mark = START
        while page := self._page(tx, number, after, until):
            yield from (row for _, row in page)
            after = page[-1]


class _Below:
    """Rows of another table that belong to some, by a column that names those."""

    def __init__(self, owner: sa.Column[Any], *order: sa.Column[Any]) -> None:
        self._owner = owner.name
        self._rows = sa.select(owner.table).where(among(owner, "ids")).order_by(*order)

    def of(self, tx: Tx, ids: Mapping[str, object]) -> Mapping[int, Sequence[Found]]:
        found: dict[int, list[Found]] = {}
        for row in tx.execute(self._rows, ids):
            one = row._asdict()
            found.setdefault(one.pop(self._owner), []).append(one)
        return found


_MESSAGES = _Paged(
    inbound,
    inbox.page,
    edits=_Below(edits.c.inbound, edits.c.edited_at),
    payloads=_Below(payloads.c.inbound, payloads.c.id),
)
_PARTS = _Paged(
    outbox_rows,
    outbox.page,
    receipts=_Below(receipts.c.outbox, receipts.c.at),
)
_TURNS = _Paged(
    run_rows,
    runs.page,
    steps=_Below(steps.c.run, steps.c.started_at, steps.c.key),
    events=_Below(events.c.run, events.c.id),
)
_EVENTS = _Paged(events, audit_log.page)


def messages(tx: Tx, number: int) -> Iterator[Found]:
    """The messages of the chat, each with its edits and the payloads that told more of it."""
    return _MESSAGES.of(tx, number, last_ids(tx).message)


def parts(tx: Tx, number: int) -> Iterator[Found]:
    """The parts that the chat was sent, or was to be, each with its receipts."""
    return _PARTS.of(tx, number, last_ids(tx).part)


def turns(tx: Tx, number: int) -> Iterator[Found]:
    """The chat's runs, each with its steps and events."""
    return _TURNS.of(tx, number, last_ids(tx).run)


def chat_events(tx: Tx, number: int) -> Iterator[Found]:
    """The events of the chat that are no run's."""
    found = _EVENTS.of(tx, number, last_ids(tx).event)
    return (one for one in found if one["run"] is None)


def loose_payloads(tx: Tx, number: int) -> Iterator[Found]:
    """Payloads that are no message's and name an address of the chat, dead letters among them."""
    account = chats.get(tx, number).account
    names = {address.chat for address in chats.addresses(tx, number)}
    after, until = 0, last_ids(tx).payload
    while (page := naming(tx, account, names, after, until)).last is not None:
        for row in page.rows:
            yield row._asdict()
        after = page.last


_PAGED = (inbound, outbox_rows, run_rows, events)
_LISTED = (reminders, told, data_requests)
_OTHERS = [
    table
    for table in metadata.sorted_tables
    if table in _LISTED
    or (table in WORDS and "chat" in table.c and table not in (*_PAGED, chat_rows))
]
_OF_CHAT = {
    table.name: sa.select(table).where(table.c.chat == CHAT_ID).order_by(*table.primary_key.columns)
    for table in _OTHERS
}


def others(tx: Tx, number: int) -> Mapping[str, Sequence[Found]]:
    """The rows of every other table that names the chat and holds words, by the table's name: its
    reminders, the notices that it was told once, what it asked of its data, notes."""
    return {name: _all(tx, question, number) for name, question in _OF_CHAT.items()}
