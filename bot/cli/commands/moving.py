"""`answerback db copy | reopen`: a move to another database, and the word that undoes it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from bot.cli.commands import backups
from bot.cli.options import Acting, grouped
from bot.cli.output import render
from bot.cli.output.layout import Column, Slot
from bot.cli.output.shapes import shape
from bot.cli.session import MISUSED, CommandFailed, operator_of, settings_with_logs
from bot.lazy_imports import lazy_imports

with lazy_imports(__name__):
    from bot.operations import database_copy
    from bot.operations.database_copy import Copied, Pace
    from bot.operations.reports.phrases import counted, span
    from bot.wiring.operator import copy_database, reopen_database

database = backups.database


@database.command()
@grouped(without=("reason", "dry_run", "yes"))
def copy(
    url: Annotated[
        str,
        typer.Argument(help="The new database, as DATABASE_URL would name it.", metavar="URL"),
    ],
    acting: Acting,
) -> None:
    """Copy everything to another database that is empty, from SQLite to PostgreSQL or back, and
    close the one in DATABASE_URL: nothing starts on it any more. Stop all processes before. Every
    row is read again and compared. A copy that broke off is made again by the same call.

    For example: answerback db copy postgresql://answerback:secret@db.internal/answerback
    """
    settings = settings_with_logs("WARNING")
    try:
        with render.progress(quiet=acting.json) as show:
            copied = copy_database(settings, url, operator_of(acting), _teller(show))
    except database_copy.CopyFailed as failed:
        raise CommandFailed(str(failed)) from failed
    if acting.json:
        render.as_json(shape(copied, tables=[shape(table) for table in copied.tables]))
    else:
        _print(copied)


def _teller(show: Callable[[str, bool], None]) -> Callable[[Pace], None]:
    def tell(pace: Pace) -> None:
        at = pace.progress
        told = f"{at.stage.value} {at.table}".rstrip()
        if at.total:
            told += f": {at.done:,} of {at.total:,} rows, {pace.rate:,.0f} a second"
        if at.left:
            told += f", {span(pace.left)} left"
        show(told, at.done == at.total and bool(at.total or not at.table))

    return tell


def _print(copied: Copied) -> None:
    if copied.tables:
        columns = (Column("table", Slot.TITLE), Column("rows"), Column("sum"))
        filled = [table for table in copied.tables if table.rows]
        render.table(columns, [(t.name, f"{t.rows:,}", t.digest) for t in filled])
        rows = sum(table.rows for table in filled)
        said = f"{counted(rows, 'row')} of {counted(len(filled), 'table')} are the same in both"
    else:
        said = "an earlier call had copied and compared everything; the new database is open now"
    lines = [f"{said}.", f"{copied.source} is closed, and its processes refuse to start."]
    if cleaned := sum(table.cleaned for table in copied.tables):
        lines.append(
            f"In {counted(cleaned, 'row')} a NUL, which PostgreSQL can't hold, became U+FFFD."
        )
    render.lines(lines)
    render.next_step(f"answerback serve  # with {copied.target} in DATABASE_URL")


@database.command()
@grouped(without=("dry_run", "json"))
def reopen(acting: Acting) -> None:
    """Take the database in DATABASE_URL into use again after `db copy` has closed it. What came to
    the other one since is not here; people may be answered twice if both are used.

    For example: answerback db reopen --reason "the new server is too slow"
    """
    settings = settings_with_logs("WARNING")
    if not acting.yes:
        if not sys.stdin.isatty():
            raise CommandFailed("the other database must not be used any more: give --yes", MISUSED)
        if not typer.confirm("Is it sure that no process uses the other database any more?"):
            raise CommandFailed("nothing was done")
    try:
        seal = reopen_database(settings, operator_of(acting))
    except database_copy.CopyFailed as failed:
        raise CommandFailed(str(failed)) from failed
    if seal is None:
        raise CommandFailed("the database is open: there is nothing to undo")
    render.lines([f"the database is open; {seal.place} must not be used any more"])
