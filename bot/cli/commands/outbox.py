"""`answerback outbox | letters`: outgoing parts, and incoming payloads that nobody could read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from bot.cli import options
from bot.cli.apply import apply_to, given, named
from bot.cli.output import render
from bot.cli.output.layout import Column, Slot, quoted
from bot.cli.output.shapes import letter_shape, part_shape
from bot.cli.session import MISUSED, CommandFailed, chats_of, in_session
from bot.domain.delivery import PartState
from bot.domain.reply import PartKind
from bot.lazy_imports import lazy_imports
from bot.operations.reports.seen import Seen, look
from bot.operations.reports.shortening import shown, without_numbers

with lazy_imports(__name__):
    from bot.operations import dead_letters
    from bot.operations import parts as actions
    from bot.wiring import OperatorSession
    from storage import outbox
    from storage.statements.tx import Tx
    from storage.views import lookup, parts
    from storage.views.parts import DeadLetter, PartFilter, PartLine

app = typer.Typer(no_args_is_help=True, help="What goes out: list it, resolve what is uncertain.")
letters = typer.Typer(no_args_is_help=True, help="Dead letters: payloads that nobody could read.")


@app.command("list")
def list_(
    *,
    state: Annotated[
        list[PartState] | None,
        typer.Option(help=f"Only in this state: {options.one_of(PartState)}.", metavar="STATE"),
    ] = None,
    kind: Annotated[
        list[PartKind] | None,
        typer.Option(help=f"Only of this kind: {options.one_of(PartKind)}.", metavar="KIND"),
    ] = None,
    run: Annotated[
        list[int] | None,
        typer.Option(parser=options.number, help="Only of this run.", metavar="NUMBER"),
    ] = None,
    chat: options.OfChats = None,
    error: options.Error = "",
    before: options.Before = None,
    limit: options.Limit = 50,
    text: options.Texts = False,
    addresses: options.Addresses = False,
    json: options.Json = False,
) -> None:
    """List the parts that went out or shall, newest first; phone numbers are cut short.

    For example: answerback outbox list --state uncertain
    """

    chosen = any((state, kind, run, chat, error, before))

    async def work(session: OperatorSession) -> tuple[Sequence[PartLine], Seen]:
        wanted = PartFilter(
            states=tuple(state or ()),
            kinds=tuple(kind or ()),
            runs=tuple(run or ()),
            chats=await chats_of(session, chat),
            error=error,
            before=before,
            limit=limit,
        )
        listed = await session.rt.db.read(parts.parts_listed, wanted)
        return listed, await session.rt.db.read(look)

    listed, seen = in_session(work)
    found = shown(listed, whole=addresses)
    none = _NONE_MATCHES if chosen else _NONE_YET
    render.listing(
        found,
        partial(part_shape, text=text),
        [*_COLUMNS, *([Column("text", Slot.WORDS)] if text else [])],
        lambda part: (
            *_row(part, seen, whole=addresses),
            *([quoted(part.text)] if text else []),
        ),
        none=none,
        json=json,
    )
    if len(found) == limit and not json:
        render.lines([f"more: --before {found[-1].id}"])


_NONE_YET = "nothing was to be sent yet; `answerback runs list` shows what is worked on"
_NONE_MATCHES = "no part matches; `answerback outbox list` without a filter shows the newest"
_COLUMNS = (
    *(Column("part", Slot.NUMBER), Column("state", Slot.TITLE), Column("kind", Slot.TITLE)),
    *(Column(name) for name in ("run", "account", "chat", "last change", "attempts")),
    *(Column("receipt"), Column("error", Slot.PROSE)),
)


def _row(part: PartLine, seen: Seen, *, whole: bool) -> tuple[object, ...]:
    return (
        part.id,
        part.state.value,
        f"{part.kind.value} {part.part}",
        part.run,
        seen.labels.get(part.account, part.channel),
        f"{part.chat} ({part.address})",
        seen.when(seen.now - part.since),
        part.attempts,
        part.receipt if whole else without_numbers(part.receipt or ""),
        part.error if part.code in part.error else f"{part.error} ({part.code})".strip(),
    )


@app.command()
@options.grouped()
def resolve(
    part: Annotated[
        list[str],
        typer.Argument(help="Parts by number; - reads them from standard input.", metavar="ID..."),
    ],
    *,
    delivered: Annotated[bool, typer.Option("--delivered", help="It arrived.")] = False,
    lost: Annotated[bool, typer.Option("--lost", help="It did not: send it again.")] = False,
    acting: options.Acting,
) -> None:
    """Say what became of uncertain parts, after a look at the chat.

    For example: answerback outbox resolve 31 --delivered --reason "seen in the chat"
    """
    if delivered == lost:
        raise CommandFailed("say either --delivered or --lost", MISUSED)
    apply_to(named(given(part), _one_part), partial(actions.resolve, arrived=delivered), acting)


def _one_part(tx: Tx, name: str) -> int:
    number = lookup.number_of(name)
    if number is None or outbox.get(tx, number) is None:
        raise CommandFailed(f"no part has the number {name}; `outbox list` shows them")
    return number


@letters.command("list")
def list_letters(
    *, limit: options.Limit = 50, text: options.Texts = False, json: options.Json = False
) -> None:
    """List dead letters, newest first; --text shows what came.

    For example: answerback letters list
    """

    def ask(tx: Tx) -> tuple[Sequence[DeadLetter], Seen]:
        return parts.dead_letters(tx, limit), look(tx)

    listed, seen = in_session(lambda session: session.rt.db.read(ask))
    render.listing(
        shown(listed, whole=False),
        partial(letter_shape, text=text),
        [*_LETTER, *([Column("payload", Slot.WORDS)] if text else [])],
        lambda x: (
            *(x.id, x.channel, seen.when(seen.now - x.age), x.size, x.error),
            *([quoted(x.body)] if text else []),
        ),
        none="no dead letters: all that came could be read",
        json=json,
    )


_LETTER = (
    *(Column("letter", Slot.NUMBER), Column("channel", Slot.TITLE), Column("came", Slot.TITLE)),
    *(Column("bytes"), Column("error", Slot.PROSE)),
)


@letters.command()
@options.grouped()
def dismiss(
    letter: Annotated[
        list[str],
        typer.Argument(
            help="Dead letters by number; - reads them from standard input.", metavar="ID..."
        ),
    ],
    *,
    acting: options.Acting,
) -> None:
    """Take dead letters off the list of what is stuck; they stay stored.

    For example: answerback letters dismiss 7 --reason "a test of ours"
    """
    apply_to(named(given(letter), _number), dead_letters.dismiss, acting, tells=False)


def _number(_tx: Tx, name: str) -> int:
    number = lookup.number_of(name)
    if number is None:
        raise CommandFailed(f"{name} is no number of a letter")
    return number
