"""Files that an operator sends: kept here, and fetched from here by the platform.

No channel takes the bytes of a file in its outbox: a part names an address, which the platform
opens, as with the file of an agent. Where nobody can reach us, a text goes as a text file.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from bot.domain.clients.desk import StoredFile
from bot.domain.clients.hosted import SIGNED_WITH, KeptName, path_of
from bot.domain.errors import NotAttached
from bot.domain.message import LONGEST_TITLE, clean, one_line
from bot.domain.reply import FileOut
from bot.leases.runtime import Runtime
from storage import chats, files, secrets
from storage.files import KeptFile
from storage.statements.tx import Tx

LARGEST = 16_000_000
"""Bytes of one file, on whichever channel: it is stored in one transaction."""
MOST = 5
"""Files of one reply."""
_TEXT = 200_000
"""Bytes of a text that may go without an address."""
_KINDS = {
    "image/jpeg": "photo",
    "image/png": "photo",
    "audio/mpeg": "audio",
    "audio/mp4": "audio",
    "video/mp4": "video",
}
"""The kinds of files that every platform shows as what they are."""


@dataclass(frozen=True, slots=True)
class Host:
    """The address of this service for platforms; empty where nobody outside reaches it. `fresh`
    becomes the secret of the files' addresses if there is none yet."""

    public_url: str
    fresh: str


def attach(tx: Tx, rt: Runtime, host: Host, chat: int, file: StoredFile) -> FileOut:
    """Keep a file of the chat, as it is sent. The same content again is the same file. Raises
    NotAttached."""
    found = chats.get(tx, chat)
    channel = rt.channels.get(found.account)
    name = one_line(clean(file.name), LONGEST_TITLE) or "file"
    kind = _KINDS.get(file.mime, "document")
    if not file.content:
        raise NotAttached(f"{name} is empty")
    largest = LARGEST if channel is None else min(LARGEST, channel.traits.largest_file(kind))
    if len(file.content) > largest:
        raise NotAttached(f"{name} has more than the {largest // 1_000_000} MB that can be sent")
    if not host.public_url:
        return FileOut(kind="document", content=_text(name, file), name=name)
    ref = hashlib.sha256(found.address.chat.encode() + b"\0" + file.content).hexdigest()
    kept = KeptFile(ref, name, clean(file.mime), file.content)
    files.keep(tx, found.account, found.address, kept)
    secret = secrets.ensure(tx, SIGNED_WITH, host.fresh)
    address = host.public_url + path_of(secret, KeptName(found.account, ref))
    return FileOut(kind=kind, url=address, name=name)


def _text(name: str, file: StoredFile) -> str:
    """A file's text. Raises NotAttached."""
    try:
        text = file.content.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if not text or "\0" in text or len(file.content) > _TEXT:
        raise NotAttached(
            f"{name} can't be fetched from here: without PUBLIC_URL only small text files are sent"
        )
    return text
