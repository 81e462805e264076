"""`answerback letters`: payloads that were acknowledged and that nobody could read."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from bot.cli import options, render
from bot.cli.acting import Act, Manner, carry_out
from bot.cli.session import CommandFailed, in_session, names_given
from bot.cli.shapes import letter_shape
from bot.cli.wording import span
from bot.operations.actions import Acted, Operator, Result
from bot.wiring import OperatorSession
from storage import audit_log, inbox
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
    if json:
        render.as_json([letter_shape(letter, text=text) for letter in found])
        return
    head = ["id", "channel", "age", "bytes", "error", *(["payload"] if text else [])]
    rows = [
        (x.id, x.channel.value, span(x.age), x.size, x.error, *([x.body] if text else []))
        for x in found
    ]
    render.table(head, rows)


@app.command()
def dismiss(
    letter: Annotated[
        list[str], typer.Argument(help="Letters by number; - reads them.", metavar="ID...")
    ],
    *,
    reason: options.Reason = "",
    who: options.Who = "",
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Take dead letters off the list of what is stuck; they stay stored.

    For example: letters dismiss 7 --reason "a test of ours"
    """
    given, piped = names_given(letter)
    manner = replace(Manner(who, reason, dry_run, yes, json), piped=piped)

    async def work(session: OperatorSession) -> int:
        return await carry_out(session, [_dismissal(manner.operator, n) for n in given], manner)

    raise typer.Exit(in_session(work))


def _dismissal(by: Operator, name: str) -> Act:
    if not (name.isascii() and name.isdecimal()):
        raise CommandFailed(f"{name} is no number of a letter")

    def act(tx: Tx) -> Acted:
        why = by.because("dismissed")
        if not inbox.dismiss_dead_letter(tx, int(name), why):
            return Acted(f"letter {name}", Result.TOO_LATE, "it is on no list")
        audit_log.note(tx, by.name, "dismissed a dead letter", f"payload {name}: {why}")
        return Acted(f"letter {name}", Result.DONE, "off the list")

    return act
