"""One conversation under several addresses: a group that migrated, a person with two ids.

Two chats that turn out to be one become one: everything of the younger moves to the older. The
younger chat's row stays and says into which it went (`merged_into`); whoever looks for it there
is led on (`chats.lock`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from bot.domain.message import Address
from storage import audit_log, inbox, journal, outbox, reminders, runs
from storage.chats.rows import IS_CHAT, Chat, know_address, locate, lock
from storage.operators import hand_replies, notes
from storage.schema.tables import chat_addresses, chats
from storage.statements.binds import GONE, KEPT
from storage.statements.tx import Tx


def link(tx: Tx, account: int, chat: int, addresses: Sequence[Address]) -> Chat:
    """Make every address lead to this chat and lock it; chats that turn out to be the same
    conversation become one."""
    if len(addresses) == 1:
        return lock(tx, chat)  # It was found, or made, under this very address.
    known = {locate(tx, account, [address]) for address in addresses}
    locked = _united(tx, {chat, *(found for found in known if found is not None)})
    for address in addresses:
        know_address(tx, account, address, locked.id)
    return locked


_READDRESS = (
    sa.update(chats)
    .where(IS_CHAT)
    .values(address=sa.bindparam("new_address"), topic=sa.bindparam("new_topic"))
)


def migrate(tx: Tx, account: int, old: Address, new: Address) -> None:
    """The conversation at `old` goes on at `new`; the two notices may come in either order."""
    before = locate(tx, account, [old])
    after = locate(tx, account, [new])
    if before is None:
        if after is not None:
            know_address(tx, account, old, after)
        return
    before = _united(tx, {before} if after is None else {before, after}).id
    know_address(tx, account, new, before)
    tx.execute(_READDRESS, {"chat_id": before, "new_address": new.chat, "new_topic": new.topic})
    audit_log.note(tx, "platform", "chat migrated", chat=before)


def lock_both(tx: Tx, chat: int, account: int, address: Address) -> None:
    """Lock this chat and the one that has this address, if there is one, in the order of their
    ids: for a move that may find out that they are the same."""
    other = locate(tx, account, [address])
    for one in sorted({chat} if other is None else {chat, other}):
        lock(tx, one)


_gone = chats.alias("gone")


def _of_gone(name: str) -> Any:
    is_gone = _gone.c.id == GONE
    return sa.select(_gone.c[name]).where(is_gone).scalar_subquery()


def _later(name: str) -> sa.ColumnElement[Any]:
    mine, other = chats.c[name], _of_gone(name)
    return sa.case((mine.is_(None), other), (mine < other, other), else_=mine)


_LATER = ("last_inbound_at", "answered_at", "not_before", "paused_until")
_CARRY_OVER = (
    sa.update(chats)
    .where(chats.c.id == KEPT)
    .values(
        {name: _later(name) for name in _LATER}
        | {
            name: sa.func.coalesce(chats.c[name], _of_gone(name))
            for name in ("opted_out_at", "handoff_at", "handoff_run")
        }
    )
)
# The address is the older chat's to take.
_LEAD_ON = (
    sa.update(chats)
    .where(sa.or_(chats.c.id == GONE, chats.c.merged_into == GONE))
    .values(
        address=sa.case((chats.c.id == GONE, sa.bindparam("gone_address")), else_=chats.c.address),
        merged_into=KEPT,
    )
)
_MOVE_ADDRESSES = sa.update(chat_addresses).where(chat_addresses.c.chat == GONE).values(chat=KEPT)


def _united(tx: Tx, several: set[int]) -> Chat:
    """Lock these chats, in the order of their ids, and let the oldest take over everything of the
    others."""
    kept, *others = sorted({lock(tx, chat).id for chat in sorted(several)})
    for gone in others:
        both = {"gone": gone, "kept": kept}
        tx.execute(_CARRY_OVER, both)
        tx.execute(_LEAD_ON, both | {"gone_address": f"merged:{gone}"})
        tx.execute(_MOVE_ADDRESSES, both)
        for table in (runs, inbox, outbox, reminders, audit_log, journal, notes, hand_replies):
            table.merge(tx, gone, kept)
        audit_log.note(tx, "platform", "chats merged", f"chat {gone} is part of it", chat=kept)
    return lock(tx, kept)
