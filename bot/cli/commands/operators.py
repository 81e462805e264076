"""`answerback operator`: setting up the operator's page."""

from __future__ import annotations

import sys

import typer

from bot.cli.output import render
from bot.cli.session import MISUSED, CommandFailed, as_text
from bot.domain.operators import SHORTEST
from bot.lazy_imports import lazy_imports

with lazy_imports(__name__):
    from bot.operator.passwords import hashed

app = typer.Typer(no_args_is_help=True, help="The operator's page, at /operator of a process.")


@app.command("hash")
def hash_() -> None:
    """Ask for a password, and print its hash for OPERATOR_PASSWORD or OPERATOR_USERS. Where no
    terminal is, it is the first line of standard input.

    For example: answerback operator hash
    """
    if sys.stdin.isatty():
        password = str(
            typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        )
    else:
        with as_text():
            password = sys.stdin.readline().rstrip("\r\n")
            password.encode()
    if len(password) < SHORTEST:
        raise CommandFailed(f"a password has {SHORTEST} characters or more", MISUSED)
    render.lines([hashed(password)])
