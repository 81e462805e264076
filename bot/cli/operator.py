"""Every command for operators, put together. Serving loads none of this."""

from __future__ import annotations

from inspect import getdoc

import typer

from bot.cli import chats, checks, database, dead_letters, outbox, runs, stuck, top


def add_to(app: typer.Typer) -> None:
    """Make these commands known to the command line."""
    for command in (stuck.stuck, top.top, runs.status, stuck.recover, checks.doctor, runs.explain):
        app.command()(command)
    app.add_typer(runs.app, name="runs")
    app.add_typer(chats.app, name="chats")
    app.add_typer(outbox.app, name="outbox")
    app.add_typer(dead_letters.app, name="letters")
    app.add_typer(checks.webhook, name="webhook")
    app.add_typer(database.app, name="db")
    app.add_typer(checks.agent, name="agent")
    _shorten(app)


def _shorten(app: typer.Typer) -> None:
    """Tell each command by its first sentence in a list of them."""
    for command in app.registered_commands:
        said = " ".join((getdoc(command.callback) or "").split())
        command.short_help = said.partition(". ")[0].rstrip(".") + "."
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _shorten(group.typer_instance)
