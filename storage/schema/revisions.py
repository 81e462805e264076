"""Applying the revisions that a database lacks, on a connection that holds the lock."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from bot.domain.errors import ConfigurationError

_SCRIPTS = str(Path(__file__).parent / "migrations")


def apply_missing(connection: Connection) -> None:
    """Bring the schema to the head. Raises ConfigurationError when it is beyond it."""
    _refuse_newer(connection)
    command.upgrade(configured(connection), "head")


def configured(connection: Connection) -> Config:
    """Alembic's configuration for work on this connection."""
    config = Config()
    config.set_main_option("script_location", _SCRIPTS.replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def head() -> str:
    """The newest revision among the files."""
    return str(ScriptDirectory(_SCRIPTS).get_current_head())


def _refuse_newer(connection: Connection) -> None:
    current = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in ScriptDirectory(_SCRIPTS).walk_revisions()}
    if current is not None and current not in known:
        raise ConfigurationError(
            f"the database is at schema {current}, which this version does not know; "
            "run the newer version of Answerback, or point DATABASE_URL elsewhere"
        )
