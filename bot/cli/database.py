"""`answerback db`: the schema."""

from __future__ import annotations

import typer

from bot.cli import options, render
from bot.cli.session import DONE, NOT_DONE, settings_with_logs
from bot.domain.errors import DatabaseUnavailable
from bot.wiring import database_exists
from bot.wiring.operator import upgrade_database
from storage.schema import migrate

app = typer.Typer(no_args_is_help=True, help="The database's schema.")


@app.command()
def upgrade() -> None:
    """Bring the database to this version's schema; a file of SQLite is made. A start does the
    same by itself, one process at a time.

    For example: db upgrade
    """
    revision = upgrade_database(settings_with_logs("WARNING"))
    render.lines([f"the database is at schema {revision}"])


@app.command()
def current(*, json: options.Json = False) -> None:
    """Show the database's schema and this version's. The exit code is 1 when they differ.

    For example: db current
    """
    url = settings_with_logs("WARNING").database_url
    if not database_exists(url):
        raise DatabaseUnavailable("there is no database file yet: run `answerback db upgrade`")
    found, ours = migrate.revisions(url)
    if json:
        render.as_json({"current": found, "newest": ours})
    else:
        state = "current" if found == ours else f"this version has {ours}: answerback db upgrade"
        render.lines([f"the database is at schema {found or 'none'}; {state}"])
    raise typer.Exit(DONE if found == ours else NOT_DONE)
