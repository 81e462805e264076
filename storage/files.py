"""Files that people sent, by the digest of their content, each under the address it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.domain.message import Address
from storage import chats
from storage.engine.binds import ACCOUNT_ID, AT_MOST, SECONDS
from storage.engine.clock import now
from storage.engine.entity import Entity
from storage.engine.insert import InsertOrSkip
from storage.engine.sets import Rows
from storage.engine.tx import Tx
from storage.schema.tables import chat_addresses, files

_FORGOTTEN = 0.0


@dataclass(frozen=True, slots=True)
class FileName:
    """A file's name among all: its account, the address of its chat, its content's SHA-256."""

    account: int
    address: str
    digest: str


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file's row. `content` is None where a folder keeps it."""

    name: FileName
    content: bytes | None


_NAME = Entity(FileName, files)
_FILE = Entity(StoredFile, files, name=_NAME)
_KEEP = InsertOrSkip(files, files.c.digest, kept_at=now)
_IS_FILE = sa.and_(
    files.c.account == sa.bindparam("account"),
    files.c.address == sa.bindparam("address"),
    files.c.digest == sa.bindparam("digest"),
)
_KEEP_AGAIN = (
    sa.update(files).where(_IS_FILE).values(kept_at=now, content=sa.bindparam("new_content"))
)


def keep(tx: Tx, name: FileName, content: bytes | None) -> None:
    """Keep a file. One that is there is kept for as long again."""
    values = {"account": name.account, "address": name.address, "digest": name.digest}
    if _KEEP.run(tx, values | {"content": content}) is None:
        tx.execute(_KEEP_AGAIN, values | {"new_content": content})


_asked, _other = chat_addresses.alias("asked"), chat_addresses.alias("other")
_ITS_ADDRESSES = (
    sa.select(_other.c.address)
    .join(_asked, _asked.c.chat == _other.c.chat)
    .where(_asked.c.account == ACCOUNT_ID, _asked.c.address == sa.bindparam("address"))
)
_FIND = sa.select(*_FILE.columns).where(
    files.c.account == ACCOUNT_ID,
    files.c.address.in_(_ITS_ADDRESSES),
    files.c.digest == sa.bindparam("digest"),
    files.c.kept_at > sa.literal_column("0"),
)


def find(tx: Tx, account: int, address: Address, digest: str) -> StoredFile | None:
    """The file of this content in the chat at this address, or under any other of its addresses.
    None: there is no such file, or it is another chat's."""
    values = {"account_id": account, "address": address.chat, "digest": digest}
    return _FILE.first(tx.execute(_FIND, values))


_named = Rows("named", account=sa.BigInteger(), address=sa.Text(), digest=sa.Text())
_IS_NAMED = sa.and_(*(files.c[name] == _named.c[name] for name in ("account", "address", "digest")))
_FORGET = (
    sa.update(files)
    .where(files.c.account == _named.c.account, files.c.address == _named.c.address)
    .values(kept_at=_FORGOTTEN, content=None)
)
_OLD = (
    sa.select(*_NAME.columns).where(files.c.kept_at < now - SECONDS).order_by(files.c.kept_at)
).limit(AT_MOST)
_DROP = sa.delete(files).where(
    sa.exists(sa.select(1).select_from(_named.table).where(_IS_NAMED)),
    files.c.kept_at < now - SECONDS,
)


def forget(tx: Tx, chat: int) -> None:
    """Delete the content of every file of the chat; what a folder keeps of them goes with the
    next sweep."""
    account = chats.get(tx, chat).account
    rows = [(account, address.chat, "") for address in chats.addresses(tx, chat)]
    tx.execute(_FORGET, _named.of(rows))


def old(tx: Tx, older: float, limit: int) -> Sequence[FileName]:
    """Files that were kept for more than `older` seconds, and those to be forgotten."""
    return _NAME.all(tx.execute(_OLD, {"seconds": older, "at_most": limit}))


def drop(tx: Tx, names: Sequence[FileName], older: float) -> None:
    """Delete those of these files that are still that old."""
    rows = _named.of((name.account, name.address, name.digest) for name in names)
    tx.execute(_DROP, rows | {"seconds": older})
