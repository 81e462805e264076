"""Copying everything to another database, and taking a closed one into use again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bot.domain.decisions.seals import Seal
from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.domain.ports import Clock
from bot.operations.session import database_exists
from storage.copying import Copied, CopyFailed, Progress, copy, reopen
from storage.engine.database import Database, DatabaseSettings, parsed_url
from storage.engine.demands import refuse_unfit

__all__ = ["Copied", "CopyFailed", "Pace", "Seal", "copy_database", "reopen_database"]


@dataclass(frozen=True, slots=True)
class Pace:
    """The progress of a copy, with its speed (`rate`, rows per second) and the seconds that are
    left. Both are 0 while they are not known."""

    progress: Progress
    rate: float = 0.0
    left: float = 0.0


def copy_database(
    source: str,
    target: str,
    clock: Clock,
    *,
    lease_seconds: float,
    who: str,
    tell: Callable[[Pace], object],
) -> Copied:
    """Copy everything to the database `target`, and close `source` for good.

    Raises ConfigurationError where it must not be done, and nothing was; DatabaseUnavailable and
    CopyFailed where it was given up: the source is as it was."""
    if not database_exists(source):
        raise ConfigurationError(f"DATABASE_URL: there is no file {parsed_url(source).database}")
    refuse_unfit(source, clock)
    with _about_target():
        to = parsed_url(target)
        refuse_unfit(target, clock)
    began = clock.monotonic()

    def paced(progress: Progress) -> None:
        rate = progress.passed / max(clock.monotonic() - began, 1e-3)
        tell(Pace(progress, rate, progress.left / rate if rate else 0.0))

    return copy(parsed_url(source), to, clock, lease_seconds=lease_seconds, who=who, tell=paced)


def reopen_database(url: str, clock: Clock, who: str, why: str) -> Seal | None:
    """Take a database into use again that was closed by a copy; returns its seal, None if it has
    none. Raises ConfigurationError, also while a copy is at work; DatabaseUnavailable; CopyFailed
    for an unfinished copy."""
    if not database_exists(url):
        raise ConfigurationError(f"DATABASE_URL: there is no file {parsed_url(url).database}")
    refuse_unfit(url, clock)
    db = Database(DatabaseSettings(url, pool=1), clock)
    try:
        return db.now_sync(reopen, who, why)
    finally:
        db.close()


@contextmanager
def _about_target() -> Iterator[None]:
    """Errors about a database that is no setting name it as what it is."""
    try:
        yield
    except (ConfigurationError, DatabaseUnavailable) as error:
        raise type(error)(str(error).replace("DATABASE_URL", "the new database", 1)) from error
