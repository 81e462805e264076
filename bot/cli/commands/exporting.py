"""Writing the record of chats: to a file or standard output, and the files that people sent."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TextIO

from bot.cli.session import MISUSED, CommandFailed
from bot.clients.files import content_in
from bot.operations.actions import Operator
from bot.privacy.readable import write_text
from bot.privacy.record import nothing_saved, write_record
from bot.wiring import OperatorSession
from storage import audit_log, chats, files
from storage.engine.database import Database, DatabaseSettings
from storage.statements.tx import Tx

_PATIENCE = 3600
"""Seconds that the transaction which reads the record may take."""


async def export(
    session: OperatorSession,
    by: Operator,
    of: Sequence[int],
    out: Path | None,
    folder: Path | None,
    *,
    text: bool,
) -> None:
    """Write the record of these chats, and note in the audit log who did. Raises CommandFailed,
    DatabaseUnavailable."""
    if text and folder is not None:
        raise CommandFailed("--files goes with JSON, which names them: leave out --text", MISUSED)
    if folder is not None:
        _make(folder)
    place = DatabaseSettings(session.settings.database_url, pool=1, patience=_PATIENCE)
    with (
        _told_if_not_written(),
        _new(out) as draft,
        closing(Database(place, session.rt.clock)) as db,
    ):
        if text:
            await db.read(write_text, draft, of)
        else:
            await db.read(_record, draft, of, _folders(session), folder)
        await session.rt.db.write(_note, by, of)
        draft.flush()
        if out is None:
            draft.seek(0)
            shutil.copyfileobj(draft, sys.stdout)


@contextmanager
def _told_if_not_written() -> Iterator[None]:
    """Around what writes a record, on a disk that may be full. Raises CommandFailed."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the pipe has read enough; that is no failure to write
    except OSError as error:
        raise CommandFailed(f"the record was not written: {error.strerror}", MISUSED) from error


@contextmanager
def _new(out: Path | None) -> Iterator[TextIO]:
    """A new file that only its owner may read; it is deleted if the body fails. Without a name, a
    temporary file, which is always deleted. Raises CommandFailed."""
    if out is None:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as draft:
            yield draft
        return
    try:
        number = os.open(out, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise CommandFailed(f"{out} can't be made: {error.strerror}", MISUSED) from error
    try:
        with os.fdopen(number, "w+", encoding="utf-8") as draft:
            yield draft
    except BaseException:
        out.unlink(missing_ok=True)
        raise


def _make(folder: Path) -> None:
    """Make a folder that only its owner may read, unless it exists. Raises CommandFailed."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandFailed(f"{folder} can't be made: {error.strerror}", MISUSED) from error


def _folders(session: OperatorSession) -> dict[int, Path]:
    """The folder of people's files, for each account that keeps them in one."""
    endpoints = {
        (endpoint.channel.name, endpoint.channel.account): endpoint
        for endpoint in session.endpoints
    }
    pages = {
        row.id: endpoint.pages
        for row in session.accounts
        if (endpoint := endpoints.get((row.channel, row.account))) is not None
    }
    return {row: Path(page.folder) for row, page in pages.items() if page and page.folder}


def _record(
    tx: Tx, draft: TextIO, of: Sequence[int], kept: dict[int, Path], folder: Path | None
) -> None:
    def save(chat: int, ref: str) -> str | None:
        """Save the file, readable by its owner alone, under its reference: the name that its sender
        gave it is not trusted."""
        assert folder is not None
        account = chats.get(tx, chat).account
        file = files.find(tx, account, ref)
        content = None if file is None else file.content
        if content is None and account in kept:
            content = content_in(kept[account], ref)
        if content is None:
            return None
        target = folder / ref
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(content)
        return target.name

    write_record(tx, draft, of, nothing_saved if folder is None else save)


def _note(tx: Tx, by: Operator, of: Sequence[int]) -> None:
    for chat in of:
        audit_log.note(tx, by.name, "exported", by.because("asked for"), chat=chat)
