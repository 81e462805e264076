"""Backups, wired: made, put back, and settled before anybody works on them."""

from __future__ import annotations

from pathlib import Path

from bot.clock import SystemClock
from bot.operations.restored import Settled
from bot.settings import Settings
from bot.wiring.process import make_ready, settle_restored
from storage import backup
from storage.backup import BackupFailed


def back_up(settings: Settings, target: Path) -> int:
    """Write a backup of the database; returns its bytes. Raises BackupFailed, ConfigurationError,
    DatabaseUnavailable."""
    return backup.make(settings.database_url, target, SystemClock())


def restore(settings: Settings, source: Path) -> tuple[Path | None, Settled]:
    """Put a backup back, and settle it; returns where the SQLite file went that was there. Raises
    BackupFailed, ConfigurationError, DatabaseUnavailable."""
    aside = backup.put_back(settings.database_url, source, SystemClock())
    return aside, after_restore(settings)


def after_restore(settings: Settings, *, marked: bool = True) -> Settled:
    """Settle that the database came from a backup, which it says of itself if it is `marked`.
    Raises BackupFailed, ConfigurationError, DatabaseUnavailable."""
    clock = SystemClock()
    make_ready(settings.database_url, clock)
    if not marked:
        backup.mark(settings.database_url, clock)
    settled = settle_restored(settings, clock)
    if settled is None:
        raise BackupFailed("a process of ours has begun to work on it: it settled this by itself")
    return settled
