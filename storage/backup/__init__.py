"""Backups of either database, made while others write, and putting one back.

A backup says of itself that it is one (`retention.mark_restored`), however it is put back: who
begins to work on it first settles what may have been done since.
"""

from __future__ import annotations

from pathlib import Path

from bot.domain.ports import Clock
from storage import holders, retention
from storage.backup import postgres_dumps, sqlite_files
from storage.backup.whole import BackupFailed, whole
from storage.engine.database import Database, DatabaseSettings, parsed_url
from storage.engine.name_lock import is_held
from storage.statements.tx import Tx


def make(url: str, target: Path, clock: Clock) -> int:
    """Write a backup of the database to a file that is not there yet; returns its bytes. Others
    go on writing meanwhile. Raises BackupFailed."""
    parsed = parsed_url(url)
    if target.exists():
        raise BackupFailed(f"{target} is there already: name another file")
    made_at = clock.wall()
    with whole(target) as part:
        if parsed.get_backend_name() == "sqlite":
            sqlite_files.copy(Path(str(parsed.database)), part, made_at)
        else:
            postgres_dumps.dump(parsed, part, made_at)
    return target.stat().st_size


def put_back(url: str, source: Path, clock: Clock) -> Path | None:
    """Put a backup in the place of a SQLite file, or into an empty database of PostgreSQL. Returns
    where the file went that was there. Raises BackupFailed."""
    if not source.is_file():
        raise BackupFailed(f"there is no file {source}")
    try:
        with source.open("rb") as raw:
            raw.read(1)
    except OSError as error:
        raise BackupFailed(f"{source} can't be read: {error.strerror}") from error
    parsed = parsed_url(url)
    if parsed.get_backend_name() == "sqlite":
        return sqlite_files.replace(source, Path(str(parsed.database)), clock)
    postgres_dumps.load(url, parsed, source, clock)
    return None


def mark(url: str, clock: Clock) -> None:
    """Have a database say that it came from a backup, when another program put it back. Raises
    BackupFailed when somebody works on it, DatabaseUnavailable."""
    db = Database(DatabaseSettings(url, pool=1), clock)
    try:
        db.now_sync(_mark, clock.wall())
    finally:
        db.close()


def _mark(tx: Tx, made_at: float) -> None:
    for row in holders.listed(tx, 0.0):
        if is_held(tx, row.name):
            raise BackupFailed(f"{row.name} works on it: stop the service, then run this again")
    retention.mark_restored(tx, made_at)
