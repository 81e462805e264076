"""Files that people sent, each under the address of the chat that it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.domain.message import Address
from storage import chats
from storage.schema.tables import chat_addresses, files
from storage.schema.tables.words import WORDS
from storage.statements.binds import ACCOUNT_ID, AT_MOST, CHAT_ID, SECONDS
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.insert import InsertOrSkip
from storage.statements.sets import among, within
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file's row. `content` is None where a folder keeps it."""

    ref: str
    name: str
    mime: str
    content: bytes | None


_FILE = Entity(KeptFile, files)
_REF = sa.bindparam("file_ref", type_=sa.Text)
_ADDRESS = sa.bindparam("its_address", type_=sa.Text)
_IS_FILE = sa.and_(files.c.account == ACCOUNT_ID, files.c.ref == _REF)
_IS_KEPT = files.c.kept_at > sa.literal_column("0")

_KEEP = InsertOrSkip(files, files.c.ref, kept_at=now)
_KEEP_AGAIN = (
    sa.update(files)
    .where(_IS_FILE)
    .values(
        name=sa.bindparam("new_name"),
        mime=sa.bindparam("new_mime"),
        content=sa.bindparam("new_content", type_=sa.LargeBinary),
        kept_at=now,
    )
)


def keep(tx: Tx, account: int, address: Address, file: KeptFile) -> None:
    """Keep a file. One that is there is kept for as long again."""
    values = {"ref": file.ref, "name": file.name, "mime": file.mime, "content": file.content}
    if _KEEP.run(tx, values | {"account": account, "address": address.chat}) is None:
        known = {"account_id": account, "file_ref": file.ref}
        new = {"new_name": file.name, "new_mime": file.mime, "new_content": file.content}
        tx.execute(_KEEP_AGAIN, known | new)


_FIND = sa.select(*_FILE.columns).where(_IS_FILE, _IS_KEPT)
_asked = chat_addresses.alias("asked")
_OF_CHAT_AT = sa.select(chat_addresses.c.address).join(
    _asked,
    sa.and_(
        _asked.c.chat == chat_addresses.c.chat,
        _asked.c.account == ACCOUNT_ID,
        _asked.c.address == _ADDRESS,
    ),
)
_FIND_IN_CHAT = _FIND.where(files.c.address.in_(_OF_CHAT_AT))


def find(tx: Tx, account: int, ref: str) -> KeptFile | None:
    """The file of this name."""
    return _FILE.first(tx.execute(_FIND, {"account_id": account, "file_ref": ref}))


def find_in_chat(tx: Tx, account: int, address: Address, ref: str) -> KeptFile | None:
    """The same, if it is of the chat at this address, whichever of its addresses it came from."""
    values = {"account_id": account, "file_ref": ref, "its_address": address.chat}
    return _FILE.first(tx.execute(_FIND_IN_CHAT, values))


_OF_CHAT = sa.select(chat_addresses.c.address).where(chat_addresses.c.chat == CHAT_ID)
_FORGET = (
    sa.update(files)
    .where(files.c.account == ACCOUNT_ID, within(files.c.address, _OF_CHAT))
    .values(kept_at=0.0, **WORDS[files])
)
_OLD = (
    sa.select(files.c.ref)
    .where(files.c.account == ACCOUNT_ID, files.c.kept_at < now - SECONDS)
    .order_by(files.c.kept_at)
    .limit(AT_MOST)
)
_DROP = sa.delete(files).where(
    files.c.account == ACCOUNT_ID, among(files.c.ref, "refs"), files.c.kept_at < now - SECONDS
)


def forget(tx: Tx, chat: int) -> None:
    """Delete the content of every file of the chat; what a folder keeps of them goes with the
    next sweep."""
    tx.execute(_FORGET, {"account_id": chats.get(tx, chat).account, "chat_id": chat})


def old(tx: Tx, account: int, older: float, limit: int) -> Sequence[str]:
    """Files that were kept more than `older` seconds ago, and those that are to be forgotten."""
    return tx.scalars(_OLD, {"account_id": account, "seconds": older, "at_most": limit}).all()


def drop(tx: Tx, account: int, refs: Sequence[str], older: float) -> None:
    """Delete those of these files that are still that old."""
    values = {"account_id": account, "refs": list(refs), "seconds": older}
    tx.execute(_DROP, values)
