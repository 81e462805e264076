"""Outgoing messages, and payloads that nobody could parse, as operators read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.domain.delivery import PartState
from bot.domain.message import Address, ChannelName, clean
from bot.domain.reply import PartKind
from storage.schema.tables import accounts, chat_addresses, chats, journal, outbox, payloads
from storage.statements.binds import ACCOUNT_ID, PART_ID
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class PartLine:
    """One outgoing message as operators see it. `since` in seconds since its last change."""

    id: int
    run: int | None
    chat: int
    account: int
    channel: ChannelName
    address: str
    kind: PartKind
    part: int
    state: PartState
    receipt: str | None
    attempts: int
    error: str
    code: str
    provider_status: str
    not_before: float
    since: float
    text: str


_begun = sa.case(
    (outbox.c.started_at > outbox.c.created_at, outbox.c.started_at), else_=outbox.c.created_at
)
_PART = Entity(
    PartLine,
    outbox,
    channel=(accounts.c.channel, ChannelName),
    address=chats.c.address,
    since=now - _begun,
)
_PARTS = (
    sa.select(*_PART.columns)
    .join(chats, chats.c.id == outbox.c.chat)
    .join(accounts, accounts.c.id == outbox.c.account)
    .order_by(outbox.c.id.desc())
)


@dataclass(frozen=True, slots=True)
class PartFilter:
    """A filter of parts; empty fields exclude nothing. `before` is a part's id."""

    states: tuple[PartState, ...] = ()
    kinds: tuple[PartKind, ...] = ()
    runs: tuple[int, ...] = ()
    chats: tuple[int, ...] = ()
    error: str = ""
    before: int | None = None
    limit: int = 50

    @property
    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """The filter as SQL."""
        asked: list[tuple[object, sa.ColumnElement[bool]]] = [
            (self.states, outbox.c.state.in_(self.states)),
            (self.kinds, outbox.c.kind.in_(self.kinds)),
            (self.runs, outbox.c.run.in_(self.runs)),
            (self.chats, outbox.c.chat.in_(self.chats)),
            (self.error, outbox.c.error.icontains(clean(self.error), autoescape=True)),
            (self.before is not None, outbox.c.id < (self.before or 0)),
        ]
        return [condition for wanted, condition in asked if wanted]


def parts_listed(tx: Tx, wanted: PartFilter) -> Sequence[PartLine]:
    """The parts that match, newest first."""
    return _PART.all(tx.execute(_PARTS.where(*wanted.conditions).limit(wanted.limit)))


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A payload that was acknowledged and can't be parsed. `age` in seconds, `size` in bytes."""

    id: int
    channel: ChannelName
    age: float
    error: str
    body: str

    @property
    def size(self) -> int:
        return len(self.body.encode())


_LETTER = Entity(
    DeadLetter,
    payloads,
    channel=(accounts.c.channel, ChannelName),
    age=now - payloads.c.received_at,
)
_LETTERS = (
    sa.select(*_LETTER.columns)
    .join(accounts, accounts.c.id == payloads.c.account)
    .where(payloads.c.error.is_not(None))
    .order_by(payloads.c.id.desc())
)


def dead_letters(tx: Tx, limit: int, only: int | None = None) -> Sequence[DeadLetter]:
    """Kept payloads that nobody could parse, newest first."""
    question = _LETTERS if only is None else _LETTERS.where(payloads.c.id == only)
    return _LETTER.all(tx.execute(question.limit(limit)))


_WIRE_IN_CHAT = (
    sa.select(outbox.c.wire)
    .join(journal, journal.c.part == outbox.c.id)
    .join(chat_addresses, chat_addresses.c.chat == journal.c.chat)
    .where(
        outbox.c.id == PART_ID,
        chat_addresses.c.account == ACCOUNT_ID,
        chat_addresses.c.address == sa.bindparam("its_address", type_=sa.Text),
    )
)


def wire_in_chat(tx: Tx, account: int, address: Address, part: int) -> str | None:
    """The wire of a part that stands in the journal of the chat at this address."""
    values = {"account_id": account, "its_address": address.chat, "part_id": part}
    return tx.scalar(_WIRE_IN_CHAT, values)
