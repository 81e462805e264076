"""The exclusive lock on a holder's name: its owner may call earlier boots of it dead.

Names are `base/1`, `base/2`, ...: a process takes the first that is free, so two processes
on one host never share one, and a restarted process finds its old name free and its old
runs at once. SQLite: a file lock, gone with the process. PostgreSQL: an advisory lock on the
lease's own connection, gone with the connection; it is looked for again at every renewal.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO, Any

from sqlalchemy import URL, Text, bindparam, func, select

from storage.statements.tx import Tx

_SLOTS = 1000
_SPACE = 7_203_615
"""The first key of our advisory locks; the second is a hash of the name."""
_TRY = select(func.pg_try_advisory_lock(_SPACE, func.hashtext(bindparam("name", type_=Text))))


_HELD = """SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = %(space)s AND objid::bigint = hashtext(%(name)s)::bigint & 4294967295"""


def is_held(tx: Tx, name: str) -> bool:
    """Tell whether a process that has this name is there, whatever its lease says."""
    if not tx.is_sqlite:
        return bool(tx.run(_HELD, {"space": _SPACE, "name": name}))
    [(_, _, file)] = tx.run("PRAGMA database_list")
    try:
        with _lock_file(file, name).open(encoding="ascii") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _lock_file(database: str | None, name: str) -> Path:
    return Path(f"{database}.{name.replace('/', '-')}.lock")


class NameLock:
    """Holds one name for this process, from `take` until `release` or the process's end."""

    def __init__(self, url: URL, base: str) -> None:
        self._file = url.database if url.get_backend_name() == "sqlite" else None
        self._base = base
        self._name: str | None = None
        self._held: IO[str] | None = None
        self._on: Any = None

    def take(self, tx: Tx) -> str:
        """The name that is locked for this process; the same as before where possible."""
        if self._name is not None and self._still_held(tx):
            return self._name
        for slot in range(1, _SLOTS):
            name = f"{self._base}/{slot}"
            if self._try(tx, name):
                self._name = name
                return name
        raise RuntimeError(f"{_SLOTS - 1} processes named {self._base} on one database")

    def keep(self, tx: Tx) -> bool:
        """Tell whether the name is still (or again) ours, on the connection that renews."""
        if self._name is None:
            return False
        return self._still_held(tx) or self._try(tx, self._name)

    def release(self) -> None:
        """Let go of a file lock; an advisory lock goes with its connection."""
        if self._held is not None:
            self._held.close()
            self._held = None
        self._name = None

    def _still_held(self, tx: Tx) -> bool:
        if self._file is not None:
            return self._held is not None
        return self._on is tx.connection

    def _try(self, tx: Tx, name: str) -> bool:
        if self._file is not None:
            return self._try_file(name)
        locked = bool(tx.scalar(_TRY, {"name": name}))
        if locked:
            self._on = tx.connection  # not its number, which the server may give to another one
        return locked

    def _try_file(self, name: str) -> bool:
        handle = _lock_file(self._file, name).open("a", encoding="ascii")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.close()
            return False
        self._held = handle
        return True
