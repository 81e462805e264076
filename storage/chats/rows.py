"""A chat as a row: finding, making, locking and reading it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from bot.domain.ending import Cause, Close, Ending
from bot.domain.message import Address, ChatKind
from storage.schema.tables import accounts, chat_addresses, chats
from storage.statements.binds import CHAT_ID
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.insert import InsertOrSkip, insert_rows, nobody_makes
from storage.statements.sets import Rows, among
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class Chat:
    """One row of `chats`. Times in epoch seconds. `answered_at` is when a person of ours last wrote
    with a device of their own, by the provider's time. `down`: its account can't send."""

    id: int
    account: int
    address: Address
    kind: ChatKind
    name: str
    language: str
    last_inbound_at: float | None
    answered_at: float | None
    paused_until: float | None
    unreachable_reason: str | None
    opted_out_at: float | None
    not_before: float
    offered: str | None
    down: bool

    @property
    def silenced(self) -> Close | None:
        """The end of every answer to this chat while nothing may be sent to it."""
        if self.opted_out_at is not None:
            return Close(Ending.UNDELIVERABLE, Cause.OPTED_OUT)
        if self.unreachable_reason:
            return Close(Ending.UNDELIVERABLE, Cause.UNREACHABLE, self.unreachable_reason)
        return None

    def heard(self, at: float, name: str, language: str, address: str) -> Chat:
        """The chat after a person wrote: the window opens (it only moves forward), the chat is
        reachable again, and replies go to the exact address of this message."""
        return replace(
            self,
            address=Address(address, self.address.topic),
            name=name or self.name,
            language=language or self.language,
            last_inbound_at=max(at, self.last_inbound_at or at),
            unreachable_reason=None,
        )

    def answered(self, written_at: float | None) -> bool:
        """Tell whether a person of ours wrote later; within a second nobody has read it."""
        if written_at is None or self.answered_at is None:
            return False
        return written_at < self.answered_at

    def paused(self, now: float) -> bool:
        """Tell whether an operator keeps the chat's runs from starting."""
        return self.paused_until is not None and self.paused_until > now


_down = sa.exists(
    sa.select(1).where(accounts.c.id == chats.c.account, accounts.c.down_since.is_not(None))
).correlate(chats)
CHAT = Entity(Chat, chats, address=Entity(Address, chats, chat=chats.c.address), down=_down)
IS_CHAT = chats.c.id == CHAT_ID

_GET = sa.select(*CHAT.columns, chats.c.merged_into).where(IS_CHAT)
# A row that is merged is never locked: it is younger than its survivor, and chats are locked in
# the order of their ids.
_LOCK = (
    sa.select(*CHAT.columns)
    .where(IS_CHAT, chats.c.merged_into.is_(None))
    .with_for_update(key_share=True)
)


def lock(tx: Tx, chat: int) -> Chat:
    """Lock the chat's row and read it: every move that changes who is the head does so. Follows
    `merged_into`: returns the surviving chat."""
    while (found := CHAT.first(tx.execute(_LOCK, {"chat_id": chat}))) is None:
        chat = get(tx, chat).id
    return found


def lock_with_next(tx: Tx, chat: int) -> None:
    """Lock the chat's row, unread, on the way of the next statement."""
    tx.later(_LOCK, {"chat_id": chat})


_LOCK_EACH = (
    sa.select(*CHAT.columns, now.label("at"))
    .where(among(chats.c.id, "chat_ids"), chats.c.merged_into.is_(None))
    .order_by(chats.c.id)
    .with_for_update(key_share=True, skip_locked=True)
)


def lock_each(tx: Tx, of: Sequence[int]) -> tuple[Mapping[int, Chat], float]:
    """As `lock`, for those of the chats that nobody else has locked, without waiting, and the
    database's clock. A chat that became part of another one is not among them."""
    found = tx.execute(_LOCK_EACH, {"chat_ids": list(of)}).all()
    return {row.id: CHAT.read(row) for row in found}, found[0].at if found else 0.0


_LOCK_FREE = (
    sa.select(chats.c.id)
    .where(among(chats.c.id, "chat_ids"))
    .order_by(chats.c.id)
    .with_for_update(key_share=True, skip_locked=True)
)


def lock_free(tx: Tx, ids: Collection[int]) -> frozenset[int]:
    """Lock those of these chats that nobody is at work on, and return them. Waits for nobody."""
    return frozenset(tx.scalars(_LOCK_FREE, {"chat_ids": sorted(ids)}))


def get(tx: Tx, chat: int) -> Chat:
    """One chat, read only. Follows `merged_into`: returns the surviving chat."""
    row = tx.execute(_GET, {"chat_id": chat}).one()
    while row.merged_into is not None:
        row = tx.execute(_GET, {"chat_id": row.merged_into}).one()
    return CHAT.read(row)


def _place(account: int, address: Address) -> dict[str, object]:
    return {"account": account, "address": address.chat, "topic": address.topic}


_IS_PLACE = sa.and_(
    chat_addresses.c.account == sa.bindparam("account"),
    chat_addresses.c.address == sa.bindparam("address"),
    chat_addresses.c.topic == sa.bindparam("topic"),
)
_LOCATE = sa.select(chat_addresses.c.chat).where(_IS_PLACE)


def locate(tx: Tx, account: int, addresses: Sequence[Address]) -> int | None:
    """The chat known under the first of these addresses that is known at all."""
    for address in addresses:
        found = tx.scalar(_LOCATE, _place(account, address))
        if found is not None:
            return int(found)
    return None


_LOCATE_EACH = sa.select(chat_addresses.c.address, chat_addresses.c.chat).where(
    chat_addresses.c.account == sa.bindparam("account"),
    among(chat_addresses.c.address, "addresses"),
    chat_addresses.c.topic == "",
)
_MERGED = sa.select(chats.c.id).where(
    among(chats.c.id, "chat_ids"), chats.c.merged_into.is_not(None)
)


def locate_each(tx: Tx, account: int, of: Sequence[Address]) -> Mapping[Address, int]:
    """The chats at these addresses without a topic, as far as there are any."""
    asked = {"account": account, "addresses": [address.chat for address in of]}
    return {Address(row.address): row.chat for row in tx.execute(_LOCATE_EACH, asked)}


def merged_of(tx: Tx, of: Sequence[int]) -> frozenset[int]:
    """Those of these chats that became part of another."""
    return frozenset(tx.scalars(_MERGED, {"chat_ids": list(of)}))


_WHERE: Mapping[str, Any] = {"account": sa.BigInteger(), "address": sa.Text(), "topic": sa.Text()}


def _at(table: sa.Table, row: Rows) -> sa.ColumnElement[bool]:
    return sa.and_(*(table.c[name] == row.c[name] for name in _WHERE))


@dataclass(frozen=True, slots=True)
class NewChat:
    """A chat to be made, as a first message tells of it."""

    account: int
    address: Address
    kind: ChatKind
    name: str
    language: str


_new = Rows("new", **_WHERE, kind=sa.Text(), name=sa.Text(), language=sa.Text())
_unknown = ~sa.exists(sa.select(1).where(_at(chat_addresses, _new)))
_in_order = (_new.c.account, _new.c.address, _new.c.topic)
_free = sa.or_(
    sa.bindparam("wait", type_=sa.Boolean),
    nobody_makes(sa.cast(_new.c.account, sa.Text) + "/" + _new.c.topic + "/" + _new.c.address),
)
_CREATE = insert_rows(
    chats, _new, sa.and_(_unknown, _free), _in_order, created_at=now
).on_conflict_do_nothing()
_KNOW_NEW = insert_rows(
    chat_addresses, _new, _unknown, _in_order, _new.join(chats, _at(chats, _new)), chat=chats.c.id
).on_conflict_do_nothing()


def create(tx: Tx, new: Sequence[NewChat], *, wait: bool = True) -> None:
    """Make the chats at these addresses that nobody knows; without `wait`, those that no other
    list is making just now. Who waits must not have locked a chat yet."""
    rows = _new.of(
        (
            chat.account,
            chat.address.chat,
            chat.address.topic,
            chat.kind.value,
            chat.name,
            chat.language,
        )
        for chat in new
    )
    tx.later(_CREATE, rows | {"wait": wait})
    tx.later(_KNOW_NEW, rows)


_sought = Rows("sought", **_WHERE)
_LOCK_AT = (
    sa.select(*CHAT.columns, _sought.c.place)
    .select_from(
        _sought.join(chat_addresses, _at(chat_addresses, _sought)).join(
            chats, chats.c.id == chat_addresses.c.chat
        )
    )
    .where(chats.c.merged_into.is_(None))
    .order_by(chats.c.id)
    .with_for_update(of=chats, key_share=True, skip_locked=True)
)


def lock_at(tx: Tx, addresses: Sequence[tuple[int, Address]]) -> Mapping[int, Chat]:
    """Lock and read the chats at these addresses (with their accounts), by the places of the
    addresses in the list. Addresses that nobody knows are left out, and chats that somebody else
    has locked."""
    sought = _sought.of((account, where.chat, where.topic) for account, where in addresses)
    return {row[-1] - 1: CHAT.read(row) for row in tx.execute(_LOCK_AT, sought)}


_KNOW = InsertOrSkip(chat_addresses, chat_addresses.c.chat)


def know_address(tx: Tx, account: int, address: Address, chat: int) -> None:
    """Remember one more address of a chat; an address that is taken stays as it is."""
    _KNOW.run(tx, _place(account, address) | {"chat": chat})


_LEAVE_ADDRESS = sa.delete(chat_addresses).where(_IS_PLACE)


_LEFT = (
    sa.update(chats)
    .where(
        chats.c.account == sa.bindparam("account_id"),
        chats.c.address == sa.bindparam("left"),
        chats.c.topic == sa.bindparam("left_topic"),
    )
    .values(address="left:" + sa.cast(chats.c.id, sa.Text))
)


def leave_address(tx: Tx, account: int, address: Address) -> None:
    """Whoever writes from this address next is somebody else. A chat that has no other is at none
    any more: its address would keep the next one's from being made."""
    place = _place(account, address)
    tx.execute(_LEAVE_ADDRESS, place)
    at = {"account_id": account, "left": address.chat, "left_topic": address.topic}
    tx.execute(_LEFT, at)


_AT_ADDRESS = (
    sa.select(chat_addresses.c.chat)
    .where(
        chat_addresses.c.account == sa.bindparam("account"),
        chat_addresses.c.address == sa.bindparam("address"),
    )
    .distinct()
    .order_by(chat_addresses.c.chat)
)
_ADDRESSES = sa.select(
    chat_addresses.c.chat, chat_addresses.c.address, chat_addresses.c.topic
).where(among(chat_addresses.c.chat, "chat_ids"))


def at_address(tx: Tx, account: int, address: str) -> Sequence[int]:
    """The chats at an address, every topic among them, in id order."""
    return tx.scalars(_AT_ADDRESS, {"account": account, "address": address}).all()


def addresses_each(tx: Tx, of: Collection[int]) -> Mapping[int, Sequence[Address]]:
    """Every address under which each of these chats was ever known."""
    found: dict[int, list[Address]] = {chat: [] for chat in of}
    for chat, *address in tx.execute(_ADDRESSES, {"chat_ids": sorted(of)}):
        found[chat].append(Address(*address))
    return found


def addresses(tx: Tx, chat: int) -> Sequence[Address]:
    """Every address under which this chat was ever known."""
    return addresses_each(tx, [chat])[chat]


def names(tx: Tx, chat: int) -> frozenset[str]:
    """All addresses under which the chat was ever reached, without topics."""
    return frozenset(address.chat for address in addresses(tx, chat))
