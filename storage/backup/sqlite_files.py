"""Copies of a SQLite file, made while others write to it, and putting one in its place."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import pysqlite3.dbapi2 as sqlite3

from bot.domain.ports import Clock
from storage.backup.whole import BackupFailed, marking, whole
from storage.engine.private import make_folder
from storage.schema.migrate import NEWEST

_PATIENCE = 30.0
"""Seconds to wait for somebody's lock on the file."""


def copy(file: Path, part: Path, made_at: float) -> None:
    """Copy what is committed, and no page that holds only what was deleted. Raises BackupFailed."""
    if not file.exists():
        raise BackupFailed(f"there is no database file {file}")
    try:
        with _opened(file) as database:
            database.execute("VACUUM INTO ?", (str(part),))
        with _opened(part) as copied:
            _check(copied, part, "quick_check")
            _mark(copied, made_at)
    except sqlite3.Error as error:
        raise BackupFailed(f"SQLite could not copy {file}: {error}") from error


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(str(file), timeout=_PATIENCE, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def _mark(copied: sqlite3.Connection, made_at: float) -> None:
    copied.execute(marking(made_at))


def _check(copied: sqlite3.Connection, file: Path, pragma: str) -> str:
    """The schema of a copy that is whole by SQLite's own examination. Raises BackupFailed."""
    try:
        [(said,)] = copied.execute(f"PRAGMA {pragma}(1)").fetchall()
        [(revision,)] = copied.execute("SELECT version_num FROM alembic_version").fetchall()
    except (sqlite3.Error, ValueError) as error:
        raise BackupFailed(f"{file} is no database of Answerback: {error}") from error
    if said != "ok":
        raise BackupFailed(f"{file} is damaged: {said}")
    return str(revision)


def replace(source: Path, file: Path, clock: Clock) -> Path | None:
    """Check the backup, put the file that is there aside, and a copy of the backup in its place.
    Returns where the former went. Raises BackupFailed."""
    try:
        make_folder(file.parent)
        like = (file if file.exists() else file.parent).stat()
    except OSError as error:
        why = f"the folder {file.parent} can't be made ({error.strerror})"
        raise BackupFailed(
            f"{why}; name a file in DATABASE_URL that this user may write"
        ) from error
    with _nobody_works(file), ExitStack() as stack, whole(file, like) as part:
        try:
            shutil.copyfile(source, part)
            _refuse_cut(part, source)
            with _opened(part) as copied:
                _refuse_newer(source, _check(copied, source, "integrity_check"))
                _mark(copied, clock.wall())
        except sqlite3.Error as error:
            raise BackupFailed(f"{source} can't be read: {error}") from error
        stack.enter_context(_nobody_writes(file))  # until the copy has its name
        return _put_aside(file, clock)


def _refuse_cut(part: Path, source: Path) -> None:
    """Refuse a file that is shorter than its header says: SQLite takes the rest as zeros."""
    with part.open("rb") as raw:
        header = raw.read(100)
    page, pages = int.from_bytes(header[16:18]), int.from_bytes(header[28:32])
    if not header.startswith(b"SQLite format 3\0"):
        raise BackupFailed(f"{source} is no database of SQLite")
    if part.stat().st_size < (65_536 if page == 1 else page) * pages:
        raise BackupFailed(f"{source} is damaged: its end is missing")


def _refuse_newer(source: Path, revision: str) -> None:
    if revision > NEWEST:
        raise BackupFailed(
            f"{source} is at schema {revision}, newer than {NEWEST}: use the newer Answerback"
        )


def _put_aside(file: Path, clock: Clock) -> Path | None:
    """Give the file a second name, under which it stays when the copy takes its first one."""
    if not file.exists():
        return None
    aside = file.with_name(f"{file.name}.before-{int(clock.wall())}")
    # Beside another file its log would destroy that. All of it is in the file, or that is damaged.
    log = file.with_name(f"{file.name}-wal")
    kept = log.exists() and log.stat().st_size
    for end in ("-wal", "-shm"):
        of_file = file.with_name(file.name + end)
        with suppress(FileNotFoundError):
            of_file.rename(aside.with_name(aside.name + end)) if kept else of_file.unlink()
    os.link(file, aside)
    return aside


@contextmanager
def _nobody_writes(file: Path) -> Iterator[None]:
    """Have everything be in the file itself, and nothing more come: who waits to write finds
    another file in its place. Raises BackupFailed when somebody does not let go of it."""
    with ExitStack() as stack:
        if file.exists():
            try:
                before = stack.enter_context(_opened(file))
                [(busy, _, _)] = before.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                before.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                busy = "locked" in str(error)
            except sqlite3.DatabaseError:
                busy = False  # it is damaged, and nobody can write it
            if busy:
                raise BackupFailed(f"somebody uses {file}: end that, then run this again")
        yield


@contextmanager
def _nobody_works(file: Path) -> Iterator[None]:
    """Hold every name that a process has had on this file. Raises BackupFailed when one works."""
    held: list[IO[str]] = []
    try:
        for lock in file.parent.glob(f"{file.name}.*.lock"):
            held.append(lock.open("a", encoding="ascii"))
            try:
                fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                name = lock.name.removeprefix(f"{file.name}.").removesuffix(".lock")
                raise BackupFailed(
                    f"{name} works on {file}: stop the service, then run this again"
                ) from error
        yield
    finally:
        for handle in held:
            handle.close()
