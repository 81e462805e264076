"""The command line: `answerback`."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
import uvloop

from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.observe.logs import set_up_logs
from bot.wiring import Role, Settings, read_settings

app = typer.Typer(
    name="answerback",
    help="A backend for WhatsApp and Telegram bots in which every message gets its answer, once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def settings_with_logs(level: str | None = None) -> Settings:
    """The settings of this call, with logging set up by them. Raises ConfigurationError."""
    settings = read_settings()
    set_up_logs(
        level or settings.log_level,
        as_json=settings.log_format == "json",
        secrets=settings.secrets(),
    )
    return settings


@app.command()
def serve(
    role: Annotated[Role, typer.Option(help="What this process does.")] = Role.ALL,
) -> None:
    """Take messages in, work on them, send the answers, until told to stop."""
    from bot.main import serve as run  # noqa: PLC0415 - a web server, only where one serves

    uvloop.run(run(settings_with_logs(), role))


@app.command()
def chat() -> None:
    """Talk to the agent in the terminal, through the whole pipeline."""
    from bot.cli.chat import chat as talk  # noqa: PLC0415 - the whole pipeline

    uvloop.run(talk(settings_with_logs("WARNING")))


@app.command()
def up() -> None:
    """Serve the platforms that are configured, or open the terminal chat if none is."""
    if read_settings().has_platform:
        serve()
    else:
        chat()


def _fill_standard_files() -> None:
    """Put nothing in the place of standard files that are closed: the next file that is opened
    would take their numbers, and what is meant for the terminal would end up in it."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def main() -> None:
    """The entry point: errors of settings and database become one clear line and code 2."""
    _fill_standard_files()
    try:
        app()
    except (ConfigurationError, DatabaseUnavailable) as error:
        sys.stderr.write(f"answerback: {error}\n")
        sys.exit(2)
