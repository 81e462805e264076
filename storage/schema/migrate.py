"""Bringing a database to the schema that this program knows, one process at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, assert_never

import pysqlite3.dbapi2 as sqlite3
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from bot.domain.decisions.schema import Fit, Schema, fit
from bot.domain.decisions.seals import SEALED_REVISIONS, DatabaseSealed
from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from storage.engine import read_only
from storage.engine.database import parsed_url
from storage.engine.demands import unreachable
from storage.engine.private import make_file, make_folder
from storage.schema import revisions
from storage.statements.tx import POSTGRES, SQLITE, Tx

_SCRIPTS = Path(__file__).parent / "migrations"
_REVISIONS = sorted(script.name[:4] for script in (_SCRIPTS / "versions").glob("[0-9]*_*.py"))
FIRST, NEWEST = _REVISIONS[0], _REVISIONS[-1]
"""The first revision and the newest, by the names of the scripts: a start on a database at the
newest loads no Alembic, which takes as long as the rest of it."""

_PATIENCE = 30.0
"""Seconds that one process waits for another's migration of a file."""
_TRIES = 60
_WAITS = "1s"
"""A migration that asks for the lock on a table keeps everybody from it who asks later: it waits
no longer than those can, and lets them go on before it tries again."""
_IN_USE = frozenset({"55P03", "40P01"})
"""PostgreSQL's codes: the time for a lock is over; two waited for each other."""
_LOCK = 7_203_615_001
"""The advisory lock's number: any number that nobody else on this database uses."""


def upgrade(url: str) -> str:
    """Apply what is missing and return the revision. Raises DatabaseSealed, ConfigurationError
    when the database is beyond this program, DatabaseUnavailable when it does not answer or its
    tables are never free."""
    found = schema_of(url)
    if found is not None and fit(found, NEWEST) in (Fit.SAME, Fit.AHEAD):
        return found.revision
    reached = NEWEST
    with locked(url) as connection:
        with connection.begin():
            found = opened(transaction(connection))
        for revision in _steps(found):
            reached = _step(connection, revision)
    return reached


def _steps(found: Schema | None) -> Sequence[str]:
    """The revisions to go to, each in a transaction of its own: a crash leaves the schema at one of
    them, and what one has locked is free before the next begins. Nobody uses a new database."""
    if found is None:
        return [NEWEST]
    return [revision for revision in _REVISIONS if revision > found.revision] or [NEWEST]


def _step(connection: Connection, revision: str) -> str:
    for _ in range(_TRIES):
        with suppress(_TablesInUse), _giving_way(), connection.begin():
            _hurry(connection)
            return apply_missing(connection, revision)
    raise DatabaseUnavailable(
        f"somebody keeps the tables locked, so the schema could not be brought to {revision}: end "
        "long transactions on this database, then start again"
    )


class _TablesInUse(Exception):
    """A lock on a table could not be had soon."""


@contextmanager
def _giving_way() -> Iterator[None]:
    """Raise _TablesInUse where those who work would have had to wait for us."""
    try:
        yield
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) not in _IN_USE:
            raise
        raise _TablesInUse from error


def _hurry(connection: Connection) -> None:
    if connection.dialect.name != "sqlite":
        connection.execute(text(f"SET LOCAL lock_timeout = '{_WAITS}'"))


def schema_of(url: str) -> Schema | None:
    """The schema of a database, None for one without ours, asked by the driver itself: an engine
    of SQLAlchemy takes longer to begin than to ask. Raises DatabaseSealed, ConfigurationError,
    DatabaseUnavailable."""
    parsed = parsed_url(url)
    if parsed.get_backend_name() != "sqlite":
        from storage.engine.server import ask  # noqa: PLC0415 - its driver, where it is used

        return ask(parsed, opened)
    file = Path(str(parsed.database))
    if not read_only.exists(file):
        return None
    try:
        if not read_only.may_write(file):
            return read_only.read(file, _asked, _PATIENCE)
        with closing(sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None)) as raw:
            return _asked(raw)
    except sqlite3.Error as error:
        raise unreachable(parsed, error) from error


def _asked(raw: Any) -> Schema | None:
    return opened(Tx(raw, SQLITE))


def opened(tx: Tx) -> Schema | None:
    """The schema of a database that is open, None for one without ours. Raises DatabaseSealed."""
    found = revisions.schema_of(tx)
    if found is not None and found.floor in SEALED_REVISIONS:
        from storage.schema.seal import seal_of  # noqa: PLC0415 - all tables, for a rare sentence

        if (seal := seal_of(tx)) is not None:
            raise DatabaseSealed(seal)
    return found


def apply_missing(connection: Connection, until: str = NEWEST) -> str:
    """Bring the schema to a revision, on a connection that holds the lock; returns the revision
    that it is at then. Raises DatabaseSealed, ConfigurationError when it is beyond it."""
    from alembic import command  # noqa: PLC0415 - see NEWEST
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    tx = transaction(connection)
    found = opened(tx)
    if found is not None:
        match fit(found, until):
            case Fit.BEYOND:
                raise ConfigurationError(
                    f"the database is at schema {found.revision}, which needs a program that knows "
                    f"{found.floor}, and this version knows {NEWEST}; "
                    "run the newer version of Answerback, or point DATABASE_URL elsewhere"
                )
            case Fit.SAME | Fit.AHEAD:
                return found.revision
            case Fit.BEHIND:
                pass
            case other:
                assert_never(other)
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    if found is not None and revisions.REVISION_TABLE not in revisions.tables(tx):
        command.stamp(config, found.revision)
    command.upgrade(config, until)
    scripts = ScriptDirectory.from_config(config).iterate_revisions(until, "base")
    floors = [getattr(script.module, "floor", FIRST) for script in scripts]
    revisions.set_floor(tx, max(floors))
    return until


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
