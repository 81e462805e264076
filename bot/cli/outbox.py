"""`answerback outbox | letters`: outgoing parts, and incoming payloads that nobody could read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from bot.cli import options, render
from bot.cli.apply import apply_to, given, named
from bot.cli.session import MISUSED, CommandFailed, chats_of, in_session
from bot.cli.shapes import letter_shape, part_shape, shown
from bot.cli.wording import span, without_numbers
from bot.domain.delivery import PartState
from bot.domain.reply import PartKind
from bot.operations import dead_letters
from bot.operations import parts as actions
from bot.wiring import OperatorSession
from storage import outbox
from storage.engine.tx import Tx
from storage.views import parts
from storage.views.parts import PartFilter, PartLine

app = typer.Typer(no_args_is_help=True, help="What goes out: list it, resolve what is uncertain.")
letters = typer.Typer(no_args_is_help=True, help="Dead letters: payloads that nobody could read.")


@app.command("list")
def list_(
    *,
    state: Annotated[list[PartState] | None, typer.Option(help="Only in this state.")] = None,
    kind: Annotated[list[PartKind] | None, typer.Option(help="Only of this kind.")] = None,
    run: Annotated[list[int] | None, typer.Option(help="Only of this run.")] = None,
    chat: options.OfChats = None,
    error: options.Error = "",
    before: options.Before = None,
    limit: options.Limit = 50,
    text: options.Texts = False,
    addresses: options.Addresses = False,
    json: options.Json = False,
) -> None:
    """List outgoing messages, newest first; phone numbers are cut short.

    For example: outbox list --state uncertain
    """

    async def work(session: OperatorSession) -> Sequence[PartLine]:
        wanted = PartFilter(
            states=tuple(state or ()),
            kinds=tuple(kind or ()),
            runs=tuple(run or ()),
            chats=await chats_of(session, chat),
            error=error,
            before=before,
            limit=limit,
        )
        return await session.rt.db.read(parts.parts_listed, wanted)

    found = shown(in_session(work), whole=addresses)
    head = ["id", "run", "chat", "kind", "part", "state", "receipt", "attempts", "since", "error"]
    render.listing(
        found,
        partial(part_shape, text=text),
        [*head, *(["text"] if text else [])],
        lambda part: (*_row(part, whole=addresses), *([part.text] if text else [])),
        json=json,
    )
    if len(found) == limit and not json:
        render.lines([f"more: --before {found[-1].id}"])


def _row(part: PartLine, *, whole: bool) -> tuple[object, ...]:
    receipt = part.receipt if whole else without_numbers(part.receipt or "")
    error = " ".join(filter(None, (part.error, part.code)))
    return (
        part.id,
        part.run,
        f"{part.chat} ({part.address})",
        part.kind.value,
        part.part,
        part.state.value,
        receipt,
        part.attempts,
        span(part.since),
        error,
    )


@app.command()
@options.grouped()
def resolve(
    part: Annotated[
        list[str], typer.Argument(help="Parts by number; - reads them.", metavar="ID...")
    ],
    *,
    delivered: Annotated[bool, typer.Option("--delivered", help="It arrived.")] = False,
    lost: Annotated[bool, typer.Option("--lost", help="It did not: send it again.")] = False,
    acting: options.Acting,
) -> None:
    """Say what became of messages that may have arrived, after a look at the chat.

    For example: outbox resolve 31 --delivered --reason "seen in the chat"
    """
    if delivered == lost:
        raise CommandFailed("say either --delivered or --lost", MISUSED)
    apply_to(named(given(part), _one_part), partial(actions.resolve, arrived=delivered), acting)


def _one_part(tx: Tx, name: str) -> int:
    number = int(name) if name.isascii() and name.isdecimal() else None
    if number is None or outbox.get(tx, number) is None:
        raise CommandFailed(f"no part has the number {name}; `outbox list` shows them")
    return number


@letters.command("list")
def list_letters(
    *, limit: options.Limit = 50, text: options.Texts = False, json: options.Json = False
) -> None:
    """List dead letters, newest first; --text shows what came.

    For example: letters list
    """
    listed = in_session(lambda session: session.rt.db.read(parts.dead_letters, limit))
    found = shown(listed, whole=False)
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


@letters.command()
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
