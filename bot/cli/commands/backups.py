"""`answerback db backup | restore | restored`: copies of the database, and what follows when one is
put back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.cli import options
from bot.cli.commands import checks
from bot.cli.output import render
from bot.cli.session import CommandFailed, settings_with_logs
from bot.lazy_imports import lazy_imports

with lazy_imports(__name__):
    from bot.operations.restored import Settled
    from bot.wiring import backups
    from storage import backup as copies

database = checks.database


@database.command()
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not be there yet.")],
    *,
    json: options.Json = False,
) -> None:
    """Write the whole database to one file, while the service runs. PostgreSQL needs its pg_dump
    here. The file holds what people wrote: keep it as you keep the database.

    For example: answerback db backup /var/backups/answerback/monday.db
    """
    settings = settings_with_logs("WARNING")
    try:
        size = backups.back_up(settings, file)
    except copies.BackupFailed as error:
        raise CommandFailed(str(error)) from error
    if json:
        render.as_json({"file": str(file), "bytes": size})
    else:
        render.lines([f"{file}: {size:,} bytes"])


@database.command()
def restore(
    file: Annotated[Path, typer.Argument(help="What `db backup` wrote, or pg_dump's SQL.")],
    *,
    json: options.Json = False,
) -> None:
    """Put a backup in the place of the database: of a SQLite file, which is put aside, or into an
    empty database of PostgreSQL. Stop the service before. Nothing that was open when the backup
    was made is done again without your word.

    For example: answerback db restore /var/backups/answerback/monday.db
    """
    settings = settings_with_logs("WARNING")
    try:
        aside, settled = backups.restore(settings, file)
    except copies.BackupFailed as error:
        raise CommandFailed(str(error)) from error
    _report(settled, aside, json=json)


@database.command()
def restored(*, json: options.Json = False) -> None:
    """Say that the database was put back in another way (a snapshot, a provider's point in time),
    before the service starts on it. Nothing that is open in it is done again without your word.

    For example: answerback db restored
    """
    settings = settings_with_logs("WARNING")
    try:
        settled = backups.after_restore(settings, marked=False)
    except copies.BackupFailed as error:
        raise CommandFailed(str(error)) from error
    _report(settled, None, json=json)


def _report(settled: Settled, aside: Path | None, *, json: bool) -> None:
    if json:
        counts = {"runs": settled.runs, "parts": settled.parts, "reminders": settled.reminders}
        render.as_json({"aside": None if aside is None else str(aside), **counts})
        return
    before = [] if aside is None else [f"the database that was here is {aside}"]
    render.lines([*before, settled.says])
