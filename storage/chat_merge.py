"""One conversation under several addresses: a group that migrated, a person with two ids."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.message import Address
from storage import audit_log, chats, merge_moves
from storage.chats import Chat
from storage.engine.tx import Tx


def link(tx: Tx, account: int, chat: int, addresses: Sequence[Address]) -> Chat:
    """Make every address lead to this chat and lock it; chats that turn out to be the same
    conversation become one."""
    if len(addresses) == 1:
        return chats.lock(tx, chat)  # It was found, or made, under this very address.
    known = {chats.locate(tx, account, [address]) for address in addresses}
    for other in sorted(found for found in known if found is not None and found != chat):
        chat = _merge(tx, chat, other)
    locked = chats.lock(tx, chat)
    for address in addresses:
        chats.know_address(tx, account, address, locked.id)
    return locked


def migrate(tx: Tx, account: int, old: Address, new: Address) -> None:
    """The conversation at `old` goes on at `new`; the two notices may come in either order."""
    before = chats.locate(tx, account, [old])
    after = chats.locate(tx, account, [new])
    if before is None:
        if after is not None:
            chats.know_address(tx, account, old, after)
        return
    if after is not None and after != before:
        before = _merge(tx, before, after)
    before = chats.lock(tx, before).id
    chats.know_address(tx, account, new, before)
    chats.readdress(tx, before, new)
    audit_log.note(tx, "platform", "chat migrated", chat=before)


def _merge(tx: Tx, one: int, other: int) -> int:
    """The older chat takes over everything of the younger; returns it."""
    kept, gone = (chats.lock(tx, chat).id for chat in sorted((one, other)))
    if gone == kept:
        return kept  # Somebody else merged them while we waited.
    merge_moves.move_all(tx, gone, kept)
    audit_log.note(tx, "platform", "chats merged", f"chat {gone} is part of it", chat=kept)
    return kept
