"""`answerback chats inbox`, `note`, `answered`: chats that want a person, and what one does there
besides writing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from bot.cli import options
from bot.cli.apply import apply_to, given, named
from bot.cli.commands.chats import app
from bot.cli.output import render
from bot.cli.output.layout import Column, Slot
from bot.cli.output.shapes import Shape, chat_shape
from bot.cli.output.wording import moment
from bot.cli.session import in_session, one_chat, words_given
from bot.domain.concern import Concern
from bot.lazy_imports import lazy_imports
from bot.operations.reports.seen import Seen, look
from bot.operations.reports.shortening import shown

__all__ = ["app"]

with lazy_imports(__name__):
    from bot.leases.runtime import Runtime
    from bot.operations import chats
    from bot.operations import inbox as acts
    from bot.operations.actions import Acted, Operator
    from bot.operations.inbox import Wanting, inbox_page
    from storage.statements.tx import Tx


@app.command()
def inbox(
    *,
    reason: Annotated[
        Concern | None,
        typer.Option(help=f"Only for this reason: {options.one_of(Concern)}.", metavar="REASON"),
    ] = None,
    limit: options.Limit = 50,
    addresses: options.Addresses = False,
    json: options.Json = False,
) -> None:
    """List the chats that want a person, each at its first reason: its agent asked for one, it was
    given up, refused, nobody knows whether a message arrived, it is paused. The longest wait comes
    first within a reason; refusals and apologies are listed for a week.

    For example: answerback chats inbox --reason uncertain
    """

    def ask(tx: Tx) -> tuple[Sequence[Wanting], Seen]:
        return inbox_page(tx, reason, None, limit).chats, look(tx)

    found, seen = in_session(lambda session: session.rt.db.read(ask))
    lines = shown([one.line for one in found], whole=addresses)
    whole = {line.id: (line, one) for line, one in zip(lines, found, strict=True)}

    def as_json(one: Wanting) -> Shape:
        line, _ = whole[one.line.id]
        since = {concern.value: moment(at) for concern, at in one.concerns.items()}
        return {
            **chat_shape(line, wants_person=Concern.ASKED in one.concerns),
            "concerns": since,
        }

    def row(one: Wanting) -> tuple[object, ...]:
        line, _ = whole[one.line.id]
        why = [f"{concern.says} {seen.when(at)}" for concern, at in one.concerns.items()]
        place = f"{line.address}/{line.topic}" if line.topic else line.address
        return line.id, line.channel, place, "; ".join(why), line.name

    none = "no chat wants a person" + ("" if reason is None else " for this reason")
    render.listing(found, as_json, _COLUMNS, row, none=none, json=json)


_COLUMNS = (
    *(Column("chat", Slot.NUMBER), Column("channel", Slot.TITLE), Column("address", Slot.TITLE)),
    *(Column("why", Slot.PROSE), Column("name", Slot.PROSE)),
)


@app.command(context_settings=options.TAKES_A_CHAT)
@options.grouped(without=["yes"])
def note(
    chat: options.Chat,
    text: Annotated[
        str,
        typer.Argument(help="The words; - reads them from standard input.", metavar="TEXT"),
    ],
    *,
    key: Annotated[
        str,
        typer.Option(
            help="A name for this note: called again with it, nothing is noted twice.",
            metavar="KEY",
        ),
    ] = "",
    acting: options.Acting,
) -> None:
    """Tell colleagues something about a chat. Nothing of it is ever sent; `chats show --text` and
    the operator's page show it.

    For example: answerback chats note 12 "Wants the refund by bank transfer."
    """
    words = words_given(text)

    def act(tx: Tx, _rt: Runtime, by: Operator, number: int) -> Acted:
        return chats.note(tx, by, number, words, key=key)

    apply_to(named([chat], one_chat), act, acting)


@app.command(context_settings=options.TAKES_A_CHAT)
@options.grouped()
def answered(chat: options.Chats, *, acting: options.Acting) -> None:
    """Say that a person answered in another way, such as by telephone: what waits in the chats ends
    as answered, and what ended without an answer counts as answered. Nothing is sent.

    For example: answerback chats answered 12 --reason "called her"
    """
    apply_to(named(given(chat), one_chat), partial(acts.mark_answered), acting)
