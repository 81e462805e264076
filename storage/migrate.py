"""Bringing a database to the schema that this program knows, one process at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pysqlite3.dbapi2 as sqlite3
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import OperationalError

from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from storage.engine import parsed_url

_LOCK = 7_203_615_001
"""The advisory lock's number: any number that nobody else on this database uses."""


def upgrade(url: str) -> str:
    """Apply what is missing and return the revision. Raises ConfigurationError when the
    database is newer than this program, DatabaseUnavailable when it does not answer."""
    # One transaction for all of it: a crash leaves the schema as it was.
    with _locked(url) as connection, connection.begin():
        _refuse_newer(connection)
        command.upgrade(_config(connection), "head")
        return str(_current(connection))


def revisions(url: str) -> tuple[str | None, str]:
    """(the database's revision, this program's)."""
    engine = _engine(url)
    try:
        with engine.connect() as connection:
            return _current(connection), head()
    except OperationalError as error:
        raise DatabaseUnavailable("the database does not answer") from error
    finally:
        engine.dispose()


def head() -> str:
    """The newest revision that this program knows."""
    return str(_scripts().get_current_head())


def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(Path(__file__).parent / "migrations"))


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option(
        "script_location", str(Path(__file__).parent / "migrations").replace("%", "%%")
    )
    config.attributes["connection"] = connection
    return config


def _refuse_newer(connection: Connection) -> None:
    current = _current(connection)
    known = {script.revision for script in _scripts().walk_revisions()}
    if current is not None and current not in known:
        raise ConfigurationError(
            f"the database is at schema {current}, which this version does not know; "
            "run the newer version of Answerback, or point DATABASE_URL elsewhere"
        )


def _engine(url: str) -> Engine:
    parsed = parsed_url(url)
    if parsed.get_backend_name() == "sqlite":
        assert parsed.database is not None
        Path(parsed.database).absolute().parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(
            parsed, module=sqlite3, connect_args={"timeout": 30.0, "isolation_level": None}
        )
        # The driver would begin a transaction only before it changes rows, not tables.
        event.listen(engine, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE"))
        return engine
    return create_engine(parsed, connect_args={"connect_timeout": 5})


@contextmanager
def _locked(url: str) -> Iterator[Connection]:
    """A connection that no other migration runs beside."""
    parsed = parsed_url(url)
    engine = _engine(url)
    try:
        if parsed.get_backend_name() == "sqlite":
            with Path(f"{parsed.database}.migrate.lock").open("w", encoding="ascii") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                with engine.connect() as connection:
                    yield connection
        else:
            with engine.connect() as guard, engine.connect() as connection:
                guard.execute(text("SELECT pg_advisory_lock(:n)"), {"n": _LOCK})
                yield connection
    except OperationalError as error:
        raise DatabaseUnavailable(
            f"the database can't be opened: {type(error.orig).__name__}"
        ) from error
    finally:
        engine.dispose()
