"""Claims: the chat of a guest becomes that of the user as whom the guest signed in, once."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from bot.domain.message import Address, ChatKind
from storage import chats
from storage.chats import NewChat
from storage.engine.clock import now
from storage.engine.insert import InsertOrSkip
from storage.engine.tx import Tx
from storage.schema.tables import claims, ended_sessions

_CLAIM = InsertOrSkip(claims, claims.c.owner, at=now)
_IS_GUEST = sa.and_(
    claims.c.account == sa.bindparam("account"), claims.c.guest == sa.bindparam("guest")
)
_OWNER = sa.select(claims.c.owner).where(_IS_GUEST)
_STANDING = sa.select(
    sa.exists(sa.select(1).where(_IS_GUEST)),
    sa.exists(
        sa.select(1).where(ended_sessions.c.session == sa.bindparam("session", type_=sa.Text))
    ),
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim's outcome: whose the guest's chat is, and the chat that both addresses lead to
    when it became so just now."""

    owner: Address
    chat: int | None = None


def claim(tx: Tx, account: int, guest: Address, user: Address, name: str) -> Claim:
    """Let the guest's address lead to the user's chat, for ever; who claimed it first keeps it.

    A message that the guest sends meanwhile may make a chat at the guest's address in this very
    moment: the addresses are looked at again until both lead to one chat.
    """
    if _CLAIM.run(tx, {"account": account, "guest": guest.chat, "owner": user.chat}) is None:
        taken = tx.scalars(_OWNER, {"account": account, "guest": guest.chat}).one()
        return Claim(Address(taken))
    if chats.locate(tx, account, [user, guest]) is None:
        chats.create(tx, [NewChat(account, user, ChatKind.PRIVATE, name, "")])
    while True:
        chats.migrate(tx, account, guest, user)
        chat = chats.locate(tx, account, [user])
        if chat is not None and chat == chats.locate(tx, account, [guest]):
            return Claim(user, chat)


def standing(tx: Tx, account: int, guest: Address, session: str) -> tuple[bool, bool]:
    """Whether the address was claimed, and whether the session was ended."""
    values = {"account": account, "guest": guest.chat, "session": session}
    claimed, ended = tx.execute(_STANDING, values).one()
    return bool(claimed), bool(ended)
