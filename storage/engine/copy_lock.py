"""The exclusive lock of a copy on each of its two databases, gone with the copying process.

SQLite: a file lock. PostgreSQL: an advisory lock of the session that copies. Whoever examines a
database sees by it that a copy is at work.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

_NUMBER = 7_203_615_002
"""The advisory lock's number, beside that of the migrations."""

AT_WORK = "`answerback db copy` is at work on it"
"""The reason that nothing can be written meanwhile."""

IS_HELD = f"""EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint = {_NUMBER >> 32} AND objid::bigint = {_NUMBER & 0xFFFF_FFFF})"""  # noqa: S608 - a number of ours
"""An expression of PostgreSQL."""


@contextmanager
def file_lock(database: Path) -> Iterator[bool]:
    """Lock a file of SQLite for the body. False: another copy has it."""
    with _lock_file(database).open("a", encoding="ascii") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def server_lock(session: psycopg.Connection[Any]) -> Iterator[bool]:
    """Lock a database of PostgreSQL for the body, whose open transaction is undone at its end.
    False: another copy has it."""
    row = session.execute("SELECT pg_try_advisory_lock(%s)", [_NUMBER]).fetchone()
    ours = row is not None and bool(row[0])
    try:
        yield ours
    finally:
        # Its end by itself would come later than the end of the session for us.
        if not session.closed:
            session.rollback()
            session.execute("SELECT pg_advisory_unlock_all()")


def is_file_held(database: Path) -> bool:
    """Tell whether a copy is at work on a file of SQLite."""
    try:
        with _lock_file(database).open(encoding="ascii") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _lock_file(database: Path) -> Path:
    return Path(f"{database}.copy.lock")
