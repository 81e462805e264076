"""The command line: `answerback`."""

from __future__ import annotations

import codecs
import gc
import io
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from inspect import getdoc
from typing import Annotated

import typer
from typer.core import TyperGroup
from typer.main import get_command

from bot.cli.session import (
    MISUSED,
    CommandFailed,
    as_text,
    settings_with_logs,
    without_rich,
)
from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.domain.findings import Finding, Level
from bot.exit import linger, to_the_end
from bot.lazy_imports import lazy_imports
from bot.operations.reports.phrases import safe
from bot.wiring.role import Role

with lazy_imports(__name__):
    import uvloop

    from bot import main as serving
    from bot.cli.commands import checks, demo, inbox, moving, operators, outbox, overview, runs
    from bot.cli.talk import chat as talking
    from bot.version import our_version
    from bot.wiring import configured, read_settings, remarks_on

_SELDOM = 200_000
"""New objects after which an operator's command collects garbage: more than any start makes."""

_LINGERS = 300.0
"""Seconds for which `serve --stay` stays with wrong settings, so that whatever restarts it at once
does not fill the log."""

_NOT_FOR_OPERATORS = ("serve", "chat", "up", "--version")
"""First words of calls that need none of the operators' commands."""

_STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}
"""The standard files in the order of their descriptors, each with the mode to open it in."""

app = typer.Typer(
    name="answerback",
    help="Bots on WhatsApp, Telegram and the web, in which every message gets its answer, once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _tell_version(asked: bool) -> None:  # noqa: FBT001 - as typer hands it over
    if asked:
        typer.echo(f"answerback {our_version()}")
        raise typer.Exit


@app.callback()
def answerback(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_tell_version, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Take the options of the program itself."""


@app.command()
def serve(
    role: Annotated[Role, typer.Option(help="What this process does.")] = Role.ALL,
    *,
    stay: Annotated[
        bool,
        typer.Option(
            "--stay",
            help="Where something else starts it again at once: when settings are wrong, say so"
            " and wait for five minutes, or to be stopped.",
        ),
    ] = False,
) -> None:
    """Take messages in, work on them, send the answers, until told to stop.

    For example: serve --role worker
    """
    try:
        with without_rich():
            program = serving.serve(settings_with_logs(), role)
        _stay(program)
    except ConfigurationError as error:
        if not stay:
            raise
        tell(error)
        said = "answerback: waits for five minutes, or to be stopped"
        uvloop.run(linger(_LINGERS, lambda: typer.echo(said, err=True)))
        raise typer.Exit(MISUSED) from None


@app.command()
def chat() -> None:
    """Talk to the agent in the terminal, through the whole pipeline.

    For example: chat, or: echo hello | answerback chat
    """
    with without_rich():
        settings = settings_with_logs("WARNING")
        _tell(remarks_on(settings, terminal=True))
        program = talking.chat(settings)
    _stay(program)


@app.command()
def up() -> None:
    """Serve the channels that are configured, or if none is: a chat in the terminal and a page.

    For example: up
    """
    settings = read_settings()
    if configured(settings):
        serve()
    else:
        _tell(remarks_on(settings))
        with without_rich():
            program = talking.chat(settings_with_logs("WARNING"), pages=True)
        _stay(program)


def _tell(remarked: Sequence[Finding]) -> None:
    """Print above the chat the remarks on the settings that a serving process logs."""
    for found in remarked:
        if found.level is not Level.OK:
            typer.echo(f"{found.name}: {found.says}; {found.fix}", err=True)


def _stay(program: Coroutine[object, object, None]) -> None:
    """Run a program that goes on until it is stopped. All objects of the imported modules are kept
    from garbage collection: a full one would take a tenth of a second to go through them, in which
    nothing else happens."""
    gc.freeze()
    gc.enable()
    uvloop.run(to_the_end(program))


def add_operators(app: typer.Typer, called: str = "") -> None:
    """Add the operators' commands to the program: all, or only the one that `called`, the first
    word of the call, names. Serving adds none of them."""
    alone: dict[str, Callable[[], Callable[..., None]]] = {
        "stuck": lambda: overview.stuck,
        "top": lambda: overview.top,
        "status": lambda: runs.status,
        "recover": lambda: overview.recover,
        "doctor": lambda: checks.doctor,
        "explain": lambda: runs.explain,
    }
    groups: dict[str, Callable[[], typer.Typer]] = {
        "runs": lambda: runs.app,
        "chats": lambda: inbox.app,
        "outbox": lambda: outbox.app,
        "letters": lambda: outbox.letters,
        "webhook": lambda: checks.webhook,
        "db": lambda: moving.database,
        "agent": lambda: checks.agent,
        "operator": lambda: operators.app,
        "demo": lambda: demo.app,
    }
    every = {*alone, *groups}
    wanted = {called} if called in every else every
    for name, command in alone.items():
        if name in wanted:
            app.command()(command())
    for name, group in groups.items():
        if name in wanted:
            app.add_typer(group(), name=name)
    _prepare(app)


def _prepare(group: typer.Typer) -> None:
    """Make the first sentence of each command's help its description in lists, and let commands
    accept only valid text."""
    for command in group.registered_commands:
        said = " ".join((getdoc(command.callback) or "").split())
        command.short_help = said.partition(". ")[0].rstrip(".") + "."
        if command.callback is not None:
            command.callback = _of_text(command.callback)
    for below in group.registered_groups:
        if below.typer_instance is not None:
            _prepare(below.typer_instance)


def _of_text(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with a check of its arguments: a string that is not valid text, which no
    database takes, is an error of the call. A path may have any bytes."""

    @wraps(command)
    def checked(**given: object) -> None:
        for name, value in given.items():
            for word in value if isinstance(value, list) else [value]:
                if isinstance(word, str):
                    with as_text(name.rstrip("_")):
                        word.encode()
        command(**given)

    return checked


def _pass_by_groups(program: object, words: Sequence[str]) -> None:
    """Remove the options of the groups on the way to the command that `words` name, since the call
    has none of them. To parse them typer would load pydantic, which help does without."""
    for word in words:
        if not isinstance(program, TyperGroup) or word not in program.commands:
            return
        program.params, program.add_help_option = [], False
        program = program.commands[word]


def _fill_standard_files() -> None:
    """Open /dev/null in the place of each standard file that is closed. Otherwise the next file
    that is opened would get its descriptor, and output for the terminal would end up in it."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def _open_streams(*names: str) -> None:
    """Make streams for those of the named standard files that were closed: Python has None."""
    for number, (name, mode) in enumerate(_STREAMS.items()):
        if name in names and getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _spell_out() -> None:
    """Write characters that the terminal's character set lacks as escapes: by default Python would
    raise an error."""
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and codecs.lookup(out.encoding).name != "utf-8":
        out.reconfigure(errors="backslashreplace")


def tell(error: Exception) -> None:
    """Print an error on standard error."""
    sys.stderr.write(f"answerback: {safe(str(error), lines=True)}\n")


def main() -> None:
    """Run a command. An error becomes one clear line and an exit code: 2 for errors of the call,
    the settings and the database."""
    _fill_standard_files()
    _open_streams("stdin", "stderr")
    _spell_out()
    called = sys.argv[1] if sys.argv[1:] else ""
    if called not in _NOT_FOR_OPERATORS:
        _open_streams("stdout")  # not for a chat: it has to notice that nobody sees its answers
        add_operators(app, called)
        # A command ends soon, or shows screens that leave little garbage.
        gc.set_threshold(_SELDOM)
        gc.enable()
    program = get_command(app)
    _pass_by_groups(program, sys.argv[1:])
    try:
        program()
    except (CommandFailed, ConfigurationError, DatabaseUnavailable) as error:
        tell(error)
        sys.exit(error.code if isinstance(error, CommandFailed) else MISUSED)
    finally:
        # Otherwise Python collects garbage three times before it ends: a third of a command's time.
        gc.freeze()
