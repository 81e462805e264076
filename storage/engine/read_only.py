"""A file of SQLite for a user who may read it and not write it.

Whoever writes keeps a `-wal` and a `-shm` beside the file, and the last one to leave takes both
away. A reader joins them, without making anything: a file of his that the service may not write
would stop the service. Where there is neither, the file is whole, and SQLite can be told to look at
nothing else (`immutable`). That holds until somebody begins to write, which is looked for after
each question.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import pysqlite3.dbapi2 as sqlite3

from bot.domain.errors import DatabaseUnavailable

T = TypeVar("T")

_TRIES = 3
"""For a question during which the service started or stopped."""
_EFFECTIVE = os.access in os.supports_effective_ids


def may_write(file: Path) -> bool:
    """Say if this user may change the file. One that is not there yet is tried."""
    if not exists(file):
        return True
    beside = all(_may(at, os.W_OK) for at in _beside(file))
    return _may(file, os.W_OK) and (beside or _may(file.parent, os.W_OK))


def belongs_to_another(file: Path) -> bool:
    """Say if the file's owner is another user than this one, or can't be told by this one."""
    return _owner(file) != _user(os.geteuid())


def refusal(file: Path) -> str:
    """The reason why this user can't write the file, with the fix."""
    me = _user(os.geteuid())
    if belongs_to_another(file):
        return f"{me} may not write {file}{_as_owner(file)}"
    return f"{me} may not write {file} in its folder: see their modes, and how the disk is mounted"


def read(file: Path, question: Callable[[Any], T], patience: float) -> T:
    """Ask on a connection that changes nothing and waits `patience` seconds for a lock. Raises
    sqlite3.Error; DatabaseUnavailable where this user can't read the file as it is."""
    for _ in range(_TRIES):
        for part in (file, *filter(exists, _beside(file))):
            if not _may(part, os.R_OK):
                me = _user(os.geteuid())
                raise DatabaseUnavailable(f"{me} may not read {part}{_as_owner(file)}")
        before = _seen(file)
        if before.written and not before.shared:
            me, owner = _user(os.geteuid()), _owner(file)
            raise DatabaseUnavailable(
                f"{me} can't read {file}: its newest rows stand in its -wal, for which a -shm must "
                f"be made first: start the service, or run this as {owner}, who owns it"
            )
        try:
            with closing(_connect(file, patience, whole=not before.written)) as connection:
                answer = question(connection)
        except sqlite3.Error:
            if _seen(file) == before:
                raise
        else:
            if before.written or _seen(file) == before:
                return answer
    raise DatabaseUnavailable(f"{file} was opened or closed by others meanwhile: ask again")


class _Seen(NamedTuple):
    """The state of the file: whether there is a `-wal` and a `-shm`, and what a write changes."""

    written: bool
    shared: bool
    marks: tuple[int, int, int]


def _seen(file: Path) -> _Seen:
    wal, shm = (exists(at) for at in _beside(file))
    now = file.stat()
    return _Seen(wal, shm, (now.st_ino, now.st_size, now.st_mtime_ns))


def _connect(file: Path, patience: float, *, whole: bool) -> Any:
    options = "mode=ro&immutable=1" if whole else "mode=ro"
    place = f"file:{quote(str(file.absolute()))}?{options}"
    return sqlite3.connect(place, timeout=patience, isolation_level=None, uri=True)


def _beside(file: Path) -> tuple[Path, Path]:
    return Path(f"{file}-wal"), Path(f"{file}-shm")


def exists(file: Path) -> bool:
    """Say if the file is there, or stands where this user may not look."""
    try:
        file.stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _may(file: Path, act: int) -> bool:
    return os.access(file, act, effective_ids=_EFFECTIVE)


def _owner(file: Path) -> str:
    try:
        return _user(file.stat().st_uid)
    except OSError:
        return ""


def _as_owner(file: Path) -> str:
    owner = _owner(file)
    return f": run this as {owner}, who owns it" if owner else ""


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
