"""Files that people sent: in the database, or in a folder that all processes share."""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from bot.domain.clients.desk import StoredFile
from bot.domain.message import Address, Attachment
from storage import files
from storage.engine.database import Database
from storage.engine.private import make_file, make_folder
from storage.files import KeptFile
from storage.views.parts import wire_in_chat

_PAGE = 50
_FOR_EVER = 1e9
"""Seconds, of which nobody counts the end."""
_KINDS = {"image": "photo", "audio": "audio", "video": "video"}


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one account. Without a folder their content stands in the database."""

    db: Database
    account: int
    folder: Path | None = None

    async def keep(self, who: Address, file: StoredFile) -> Attachment:
        """Keep a file of the chat at this address. The same content again is the same file."""
        ref = hashlib.sha256(who.chat.encode() + b"\0" + file.content).hexdigest()
        if self.folder is not None:
            await asyncio.to_thread(_write, _place(self.folder, ref), file.content)
        content = file.content if self.folder is None else None
        kept = KeptFile(ref, file.name, file.mime, content)
        await self.db.write(files.keep, self.account, who, kept)
        kind = _KINDS.get(file.mime.partition("/")[0], "document")
        return Attachment(kind, ref, file.mime, file.name, len(file.content))

    async def of_chat(self, who: Address, ref: str) -> StoredFile | None:
        """A file of the chat at this address; None where it has none of this name."""
        return await self._read(
            await self.db.read(files.find_in_chat, self.account, who, ref),
        )

    async def content(self, ref: str) -> bytes | None:
        """A file's content, for the agent."""
        file = await self._read(await self.db.read(files.find, self.account, ref))
        return None if file is None else file.content

    async def part(self, who: Address, part: int) -> str | None:
        """The wire of a part that the chat at this address was sent."""
        return await self.db.ask(wire_in_chat, self.account, who, part)

    async def _read(self, kept: KeptFile | None) -> StoredFile | None:
        if kept is None:
            return None
        content = kept.content
        if content is None and self.folder is not None:
            content = await asyncio.to_thread(_content, _place(self.folder, kept.ref))
        return None if content is None else StoredFile(kept.name, kept.mime, content)

    async def sweep(self, older: float) -> None:
        """Delete what was kept for more than `older` seconds (0: nothing is too old), and what
        is to be forgotten. First the content, then the row: who dies between begins again."""
        seconds = older or _FOR_EVER
        while refs := await self.db.read(files.old, self.account, seconds, _PAGE):
            if self.folder is not None:
                for ref in refs:
                    await asyncio.to_thread(_place(self.folder, ref).unlink, missing_ok=True)
            await self.db.write(files.drop, self.account, refs, seconds)


def _place(folder: Path, ref: str) -> Path:
    return folder / ref[:2] / ref


def _write(place: Path, content: bytes) -> None:
    """Write a file whole or not at all, and to the disk before a row names it."""
    make_folder(place.parent)
    draft = place.with_name(f".{place.name}.{os.getpid()}")
    make_file(draft)
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(place)


def content_in(folder: Path, ref: str) -> bytes | None:
    """The content of a file that a folder keeps; None where it is not there."""
    return _content(_place(folder, ref))


def _content(place: Path) -> bytes | None:
    try:
        return place.read_bytes()
    except FileNotFoundError:
        return None
