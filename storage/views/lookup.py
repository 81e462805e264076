"""What a name means: a run's or a chat's number, a request id, a platform's address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, or_, select

from storage.engine.tx import Tx
from storage.schema.tables import accounts, chat_addresses, chats, inbound, runs


def _under(tx: Tx, request_id: str) -> ColumnElement[bool]:
    """Messages under this id. The index is by account, so the accounts are named."""
    every = tx.scalars(select(accounts.c.id)).all()
    return and_(inbound.c.account.in_(every), inbound.c.request_id == request_id)


def runs_named(tx: Tx, name: str) -> Sequence[int]:
    """The runs that a number or a request id names; several when accounts share the id."""
    if name.isascii() and name.isdecimal():
        found = tx.scalars(select(runs.c.id).where(runs.c.id == int(name))).all()
        if found:
            return found
    return tx.scalars(
        select(inbound.c.run).where(_under(tx, name), inbound.c.run.is_not(None)).distinct()
    ).all()


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded message: the run that answers it, or why none does."""

    run: int | None
    ignored: str | None


def recorded_under(tx: Tx, request_id: str, account: int | None) -> Recorded | None:
    """The newest message recorded under this id, of one account or of any; None: unknown."""
    question = select(inbound.c.run, inbound.c.ignored).where(_under(tx, request_id))
    if account is not None:
        question = question.where(inbound.c.account == account)
    row = tx.execute(question.order_by(inbound.c.id.desc()).limit(1)).first()
    return None if row is None else Recorded(row.run, row.ignored)


_WHATSAPP = "whatsapp:"


def chats_named(tx: Tx, name: str) -> Sequence[int]:
    """The chats that our id or a platform's address names (`address/topic` for a topic)."""
    address, _, topic = name.partition("/")
    known = or_(
        chat_addresses.c.address == address, chat_addresses.c.address == _WHATSAPP + address
    )
    every = tx.scalars(select(accounts.c.id)).all()
    known = and_(chat_addresses.c.account.in_(every), known)
    if topic:
        known = and_(known, chat_addresses.c.topic == topic)
    by_address = tx.scalars(select(chat_addresses.c.chat).where(known).distinct()).all()
    if by_address or not (name.isascii() and name.isdecimal()):
        return by_address
    return tx.scalars(select(chats.c.id).where(chats.c.id == int(name))).all()
