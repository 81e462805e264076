"""Bringing a database to the schema that this program knows, one process at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2 as sqlite3
from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from bot.domain.decisions.seals import SEALED_REVISIONS, DatabaseSealed
from bot.domain.errors import ConfigurationError
from storage.engine import read_only
from storage.engine.database import parsed_url
from storage.engine.demands import unreachable
from storage.engine.private import make_file, make_folder
from storage.statements.tx import POSTGRES, SQLITE, Tx

_SCRIPTS = Path(__file__).parent / "migrations"
NEWEST = max(script.name[:4] for script in (_SCRIPTS / "versions").glob("[0-9]*_*.py"))
"""The newest revision, by the names of the scripts: a start on a database at this revision loads
no Alembic, which takes as long as the rest of it."""

_PATIENCE = 30.0
"""Seconds that one process waits for another's migration of a file."""
_LOCK = 7_203_615_001
"""The advisory lock's number: any number that nobody else on this database uses."""


def upgrade(url: str) -> str:
    """Apply what is missing and return the revision. Raises DatabaseSealed, ConfigurationError
    when the database is newer than this program, DatabaseUnavailable when it does not answer."""
    current = revisions(url)[0]
    if current == NEWEST:
        return current
    # One transaction for all of it: a crash leaves the schema as it was.
    with locked(url) as connection, connection.begin():
        apply_missing(connection)
        return str(_current(connection))


def revisions(url: str) -> tuple[str | None, str]:
    """(the database's revision, this program's), asked by the driver itself: an engine of
    SQLAlchemy takes longer to begin than to ask. Raises DatabaseSealed, ConfigurationError,
    DatabaseUnavailable."""
    parsed = parsed_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _revision_of_file(parsed), NEWEST
    from storage.engine.server import revision_of  # noqa: PLC0415 - its driver, where it is used

    found = revision_of(parsed)
    if found in SEALED_REVISIONS:
        with _reached(url) as engine, engine.connect() as connection:
            found = _current(connection)
    return found, NEWEST


def _revision_of_file(url: URL) -> str | None:
    file = Path(str(url.database))
    if not read_only.exists(file):
        return None
    try:
        if not read_only.may_write(file):
            return read_only.read(file, _told_by, _PATIENCE)
        with closing(sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None)) as raw:
            return _told_by(raw)
    except sqlite3.Error as error:
        raise unreachable(url, error) from error


def _told_by(raw: Any) -> str | None:
    if not raw.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchall():
        return None
    row = raw.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else _open(str(row[0]), Tx(raw, SQLITE))


def _open(revision: str, tx: Tx) -> str:
    """The revision of a database that is open. Raises DatabaseSealed for any other."""
    if revision in SEALED_REVISIONS:
        from storage.schema.seal import seal_of  # noqa: PLC0415 - all tables, for a rare sentence

        if (seal := seal_of(tx)) is not None:
            raise DatabaseSealed(seal)
    return revision


def apply_missing(connection: Connection) -> None:
    """Bring the schema to the newest revision, on a connection that holds the lock. Raises
    DatabaseSealed, ConfigurationError when it is beyond it."""
    from alembic import command  # noqa: PLC0415 - see NEWEST
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    current = _current(connection)
    if current is not None and current not in known:
        raise ConfigurationError(
            f"the database is at schema {current}, which this version does not know; "
            "run the newer version of Answerback, or point DATABASE_URL elsewhere"
        )
    command.upgrade(config, "head")


def _current(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return None if found is None else _open(str(found), transaction(connection))


def transaction(connection: Connection) -> Tx:
    """The transaction that is open on this connection."""
    sqlite = connection.dialect.name == "sqlite"
    return Tx(connection.connection.driver_connection, SQLITE if sqlite else POSTGRES)


@contextmanager
def locked(url: str) -> Iterator[Connection]:
    """A connection that no other migration runs beside. Raises DatabaseUnavailable."""
    with _reached(url) as engine:
        if engine.dialect.name == "sqlite":
            # The driver would begin a transaction only before it changes rows, not tables.
            event.listen(engine, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE"))
            with Path(f"{engine.url.database}.migrate.lock").open("w", encoding="ascii") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                with engine.connect() as connection:
                    # A property of the file, which can't be set while anybody uses it.
                    raw: sqlite3.Connection = connection.connection.driver_connection
                    raw.execute("PRAGMA journal_mode = WAL")
                    yield connection
        else:
            with engine.connect() as guard, engine.connect() as connection:
                guard.execute(text("SELECT pg_advisory_lock(:n)"), {"n": _LOCK})
                yield connection


@contextmanager
def _reached(url: str) -> Iterator[Engine]:
    """Connections for the body alone. Raises DatabaseUnavailable for what it meets there."""
    engine = _engine(url)
    try:
        yield engine
    except (OperationalError, ProgrammingError) as error:
        raise unreachable(engine.url, error.orig) from error
    finally:
        engine.dispose()


def _engine(url: str) -> Engine:
    parsed = parsed_url(url)
    if parsed.get_backend_name() != "sqlite":
        line = {"connect_timeout": 5, "client_encoding": "UTF8"}
        return create_engine(parsed, hide_parameters=True, connect_args=line)
    assert parsed.database is not None
    file = Path(parsed.database).absolute()
    folder = file.parent
    try:
        make_folder(folder)
        if not file.exists():
            make_file(file)
    except OSError as error:
        raise ConfigurationError(
            f"DATABASE_URL: the folder {folder} can't be made ({error.strerror}); "
            "name a file in a folder where this program may write"
        ) from error
    return create_engine(
        parsed,
        module=sqlite3,
        hide_parameters=True,
        connect_args={"timeout": _PATIENCE, "isolation_level": None},
    )
