"""`answerback letters`: payloads that were acknowledged and that nobody could read."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from bot.cli import options, render
from bot.cli.apply import apply_to, given, named
from bot.cli.session import CommandFailed, in_session
from bot.cli.shapes import letter_shape
from bot.cli.wording import span
from bot.operations import dead_letters
from storage.engine.tx import Tx
from storage.views import parts

app = typer.Typer(no_args_is_help=True, help="Dead letters: payloads that nobody could read.")


@app.command("list")
def list_(
    *, limit: options.Limit = 50, text: options.Texts = False, json: options.Json = False
) -> None:
    """List dead letters, newest first; --text shows what came.

    For example: letters list
    """
    found = in_session(lambda session: session.rt.db.read(parts.dead_letters, limit))
    render.listing(
        found,
        partial(letter_shape, text=text),
        ["id", "channel", "age", "bytes", "error", *(["payload"] if text else [])],
        lambda x: (
            *(x.id, x.channel, span(x.age), x.size, x.error),
            *([x.body] if text else []),
        ),
        json=json,
    )


@app.command()
@options.grouped()
def dismiss(
    letter: Annotated[
        list[str], typer.Argument(help="Letters by number; - reads them.", metavar="ID...")
    ],
    *,
    acting: options.Acting,
) -> None:
    """Take dead letters off the list of what is stuck; they stay stored.

    For example: letters dismiss 7 --reason "a test of ours"
    """
    apply_to(named(given(letter), _number), dead_letters.dismiss, acting, tells=False)


def _number(_tx: Tx, name: str) -> int:
    if not (name.isascii() and name.isdecimal()):
        raise CommandFailed(f"{name} is no number of a letter")
    return int(name)
