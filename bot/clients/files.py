"""Files that people sent: in the database, or in a folder that all processes share."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.domain.clients.desk import StoredFile
from bot.domain.errors import DatabaseUnavailable
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
        """Keep a file of the chat at this address. The same content again is the same file. Raises
        DatabaseUnavailable."""
        ref = hashlib.sha256(who.chat.encode() + b"\0" + file.content).hexdigest()
        content = file.content if self.folder is None else None
        kept = KeptFile(ref, file.name, file.mime, content)
        # The row first: what no row names would stay in the folder for ever.
        await self.db.write(files.keep, self.account, who, kept)
        if self.folder is not None:
            with _on_disk():
                await asyncio.to_thread(_write, _place(self.folder, ref), file.content)
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
            with _on_disk():
                content = await asyncio.to_thread(_content, _place(self.folder, kept.ref))
        return None if content is None else StoredFile(kept.name, kept.mime, content)

    async def sweep(self, older: float) -> None:
        """Delete what was kept for more than `older` seconds (0: nothing is too old), and what
        is to be forgotten. First the content, then the row: who dies between begins again."""
        seconds = older or _FOR_EVER
        while refs := await self.db.read(files.old, self.account, seconds, _PAGE):
            if self.folder is not None:
                for ref in refs:
                    await asyncio.to_thread(_delete, _place(self.folder, ref))
            await self.db.write(files.drop, self.account, refs, seconds)


def _place(folder: Path, ref: str) -> Path:
    return folder / ref[:2] / ref


@contextmanager
def _on_disk() -> Iterator[None]:
    """Around the use of a folder: one that can't be used now is like a database that can't. Raises
    DatabaseUnavailable."""
    try:
        yield
    except OSError as error:
        raise DatabaseUnavailable(f"WEB_FILES can't be used now: {error.strerror}") from error


def _write(place: Path, content: bytes) -> None:
    """Write a file whole or not at all, and to the disk before a message names it."""
    make_folder(place.parent)
    draft = place.with_name(f"{_draft_of(place)}{os.getpid()}")
    try:
        make_file(draft)
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _delete(place: Path) -> None:
    """Delete a file, and what a process that died had written of it."""
    place.unlink(missing_ok=True)
    for draft in place.parent.glob(f"{_draft_of(place)}*"):
        draft.unlink(missing_ok=True)


def _draft_of(place: Path) -> str:
    """The beginning of the names of a file's drafts."""
    return f".{place.name}."


def content_in(folder: Path, ref: str) -> bytes | None:
    """The content of a file that a folder keeps; None where it is not there."""
    return _content(_place(folder, ref))


def _content(place: Path) -> bytes | None:
    try:
        return place.read_bytes()
    except FileNotFoundError:
        return None
