"""The page of the commands, from their help."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import typer
from form import MADE, page, plain, table
from typer.main import get_command

from bot.cli.app import add_operators, app

_COMMANDS = """\
`answerback COMMAND --help` tells the same in a terminal. From a checkout it is
`.venv/bin/answerback`. Which act is safe, and the exit codes: [operating](operating.md)."""


def commands() -> str:
    """The page of all commands, as their help tells them."""
    whole = typer.Typer(name="answerback")
    whole.registered_commands = list(app.registered_commands)
    add_operators(whole)
    pieces = ["# Commands", MADE, _COMMANDS]
    root = get_command(whole)
    for name, command in getattr(root, "commands", {}).items():
        below = getattr(command, "commands", None)
        pieces += [f"## {name}", *([_words(command)] if below else _command(name, command))]
        for word, one in (below or {}).items():
            pieces += [f"### {name} {word}", *_command(f"{name} {word}", one)]
    return page(*pieces)


def _words(command: Any) -> str:
    return " ".join((command.help or "").split())


def _command(name: str, command: Any) -> Iterator[str]:
    said, _, example = inspect.cleandoc(command.help or "").partition("For example: ")
    yield _prose(said)
    shown = [p for p in command.params if p.name != "help"]
    arguments = [p for p in shown if p.param_type_name == "argument"]
    line = " ".join(["answerback", name, *(_argument(p) for p in arguments)])
    yield f"```text\n{line}{' [OPTIONS]' if len(shown) > len(arguments) else ''}\n```"
    if shown:
        yield table(("", ""), [(f"`{_spelled(p)}`", _help(p)) for p in shown])
    if example:
        yield f"For example: `{' '.join(example.split())}`"


def _prose(said: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in said.strip().split("\n\n"))


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return name if parameter.required else f"[{name}]"


def _spelled(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return names
    kind = parameter.type_descriptor.annotation
    kind = get_args(kind)[0] if get_origin(kind) is list else kind
    words = "|".join(_choices(kind)) or _PLAIN.get(kind, "TEXT")
    return f"{names} {parameter.metavar or words}"


_PLAIN = {int: "NUMBER", float: "NUMBER"}


def _choices(kind: Any) -> tuple[str, ...]:
    """The values that an option takes, where they are few."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(str(member.value) for member in kind)
    return get_args(kind) if get_origin(kind) is Literal else ()


def _help(parameter: Any) -> str:
    said = str(parameter.help or "").replace("<", "\\<")
    default = parameter.default
    default = getattr(default, "value", default)
    if parameter.required:
        said += " Required."
    elif isinstance(default, str | int | float) and not isinstance(default, bool) and default:
        said += f" Without it: {plain(default)}."
    return said
