"""Claims: the chat of a guest becomes that of the user as whom the guest signed in, once."""

from __future__ import annotations

import sqlalchemy as sa

from bot.domain.message import Address, ChatKind
from storage import chats
from storage.chats import NewChat
from storage.schema.tables import claims
from storage.statements.clock import now
from storage.statements.insert import InsertOrSkip
from storage.statements.tx import Tx

_CLAIM = InsertOrSkip(claims, claims.c.owner, at=now)
_OWNER = sa.select(claims.c.owner).where(
    claims.c.account == sa.bindparam("account_id"), claims.c.guest == sa.bindparam("guest_address")
)


def claim(tx: Tx, account: int, guest: Address, user: Address) -> tuple[Address, bool]:
    """Let the guest's address lead to the user's chat, for ever. Returns whose it is, and whether
    it became so just now: who claimed it first keeps it.

    A message that the guest sends meanwhile may make a chat at the guest's address in this very
    moment: the addresses are looked at again until both lead to one chat.
    """
    if _CLAIM.run(tx, {"account": account, "guest": guest.chat, "owner": user.chat}) is None:
        taken = owner(tx, account, guest)
        assert taken is not None
        return taken, False
    if chats.locate(tx, account, [user, guest]) is None:
        chats.create(tx, [NewChat(account, user, ChatKind.PRIVATE, "", "")])
    while True:
        chats.migrate(tx, account, guest, user)
        chat = chats.locate(tx, account, [user])
        if chat is not None and chat == chats.locate(tx, account, [guest]):
            return user, True


def owner(tx: Tx, account: int, guest: Address) -> Address | None:
    """The user whose the guest's chat became, if it did."""
    found = tx.scalar(_OWNER, {"account_id": account, "guest_address": guest.chat})
    return None if found is None else Address(found)
