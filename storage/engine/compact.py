"""Writing a database anew, without what was deleted from it.

A deleted word stays in the unused space of a file until something else stands there. SQLite's
`secure_delete` is not enough: pages that were split before keep pieces, and every write costs a
third more. `VACUUM` copies what is left, and the journal beside the file is cut to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pysqlite3.dbapi2 as sqlite3
from sqlalchemy import URL

from bot.domain.errors import DatabaseUnavailable
from storage.statements.tx import SQLITE

_PATIENCE = 5.0
"""Seconds that it waits for those who read or write the file."""


def size_of(url: URL) -> int:
    """The bytes of a file of SQLite and its journal."""
    file = Path(str(url.database))
    parts = (file, file.with_name(f"{file.name}-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())


def compact_file(url: URL) -> bool:
    """Write a file of SQLite anew. Nobody else writes meanwhile. False: somebody read an older
    state of it all the time, so that the journal could not be cut. Raises DatabaseUnavailable."""
    (file, *_), options = SQLITE.create_connect_args(url)
    try:
        with closing(
            sqlite3.connect(file, **{"timeout": _PATIENCE, **options}, isolation_level=None)
        ) as raw:
            raw.execute("PRAGMA synchronous = FULL")
            raw.execute("VACUUM")
            [busy, *_] = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy
    except sqlite3.OperationalError as error:
        raise DatabaseUnavailable(f"SQLite could not write the file anew: {error}") from error


def compact(url: URL, tables: Iterable[str]) -> bool:
    """Write a file of SQLite anew, or these tables of PostgreSQL. False: it is to be tried again.
    Raises DatabaseUnavailable."""
    if url.get_backend_name() == "sqlite":
        return compact_file(url)
    compact_tables(url, tables)
    return True


def compact_tables(url: URL, tables: Iterable[str]) -> None:
    """Write tables of PostgreSQL anew, each locked whole for so long. Raises
    DatabaseUnavailable."""
    import psycopg  # noqa: PLC0415 - the driver, where it is used
    from psycopg import sql  # noqa: PLC0415

    from storage.engine import postgres  # noqa: PLC0415

    try:
        with closing(postgres.connect(url)) as connection:
            for table in tables:
                connection.execute(sql.SQL("VACUUM (FULL) {}").format(sql.Identifier(table)))
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"PostgreSQL could not write its tables anew: {error}") from error
