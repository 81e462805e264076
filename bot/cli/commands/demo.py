"""`answerback demo kill`: the promise, seen with one's own eyes."""

from __future__ import annotations

from typing import Annotated

import typer

from bot.lazy_imports import lazy_imports

with lazy_imports(__name__):
    from bot.cli.talk import story

app = typer.Typer(no_args_is_help=True, help="The promise, shown with real processes.")


@app.command()
def kill(
    *,
    seconds: Annotated[
        float, typer.Option(min=1, max=30, help="Seconds for which the agent works.")
    ] = 10.0,
    within: Annotated[float, typer.Option(min=1, help="Seconds until it is given up.")] = 60.0,
) -> None:
    """Kill a process in the middle of a turn, start the next one, and tell what became of the
    message. It needs no credentials, touches nothing of yours, and leaves nothing behind.
    The exit code is 0 when the message got its one answer.

    For example: answerback demo kill
    """
    raise typer.Exit(story.tell_kill(seconds, within))
