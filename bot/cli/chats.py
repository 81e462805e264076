"""`answerback chats`: conversations, and taking one over by hand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from bot.cli import options, render
from bot.cli.apply import apply_each, apply_to, given, named
from bot.cli.runs import print_course, state_of
from bot.cli.session import CommandFailed, in_session, one_chat, operator_of
from bot.cli.shapes import chat_shape, moment_shape, run_shape, shown
from bot.cli.wording import moment, span
from bot.operations import chats
from bot.wiring import OperatorSession
from storage.engine.tx import Tx
from storage.views import chats as chat_views
from storage.views import runs as run_views
from storage.views import timeline
from storage.views.chats import ChatLine
from storage.views.runs import RunFilter, RunLine
from storage.views.timeline import Moment

app = typer.Typer(no_args_is_help=True, help="Conversations, and taking one over by hand.")
_NEWEST = 20


@app.command("list")
def list_(
    *,
    paused: Annotated[bool, typer.Option("--paused", help="Only paused ones.")] = False,
    unreachable: Annotated[
        bool, typer.Option("--unreachable", help="Only those that nothing reaches.")
    ] = False,
    limit: options.Limit = 50,
    addresses: options.Addresses = False,
    json: options.Json = False,
) -> None:
    """List chats, those heard last first; phone numbers are cut short.

    For example: chats list --paused
    """

    def ask(tx: Tx) -> Sequence[ChatLine]:
        return chat_views.chats_listed(tx, paused=paused, unreachable=unreachable, limit=limit)

    found = shown(in_session(lambda session: session.rt.db.read(ask)), whole=addresses)
    who = ("id", "channel", "account", "address", "kind", "name")
    head = (*who, "last heard", "live runs", "state")
    render.listing(found, chat_shape, head, _row, json=json)


def _row(chat: ChatLine) -> tuple[object, ...]:
    heard = "" if chat.last_inbound_at is None else moment(chat.last_inbound_at)
    address = f"{chat.address}/{chat.topic}" if chat.topic else chat.address
    who = (chat.id, chat.channel, chat.account, address, chat.kind, chat.name)
    return (*who, heard, chat.live, _state(chat))


def _state(chat: ChatLine) -> str:
    states = []
    if chat.paused_until is not None:
        states.append("paused")
    if chat.unreachable_since is not None:
        states.append(f"unreachable: {chat.unreachable_reason}")
    if chat.opted_out_at is not None:
        states.append("opted out")
    return ", ".join(states)


@app.command(context_settings=options.TAKES_A_CHAT)
def show(chat: options.Chat, *, json: options.Json = False) -> None:
    """Show a chat, its newest runs and what happened to it.

    For example: chats show -1001234567890123
    """
    line, newest, course = in_session(
        lambda session: session.rt.db.read(_whole, chat, session.settings.lease_seconds)
    )
    if json:
        render.as_json(
            {
                **chat_shape(line),
                "runs": [run_shape(run) for run in newest],
                "events": [moment_shape(m, text=False) for m in course],
            }
        )
        return
    who = f"{line.channel} {line.account}, {line.address} {line.name}"
    render.lines([f"chat {line.id}: {who}", *filter(None, [_state(line)])])
    rows = [(r.id, r.request_id, state_of(r), span(r.age)) for r in newest]
    render.table(("run", "request", "state", "age"), rows)
    print_course(course, text=False)


def _whole(tx: Tx, name: str, lease: float) -> tuple[ChatLine, Sequence[RunLine], Sequence[Moment]]:
    chat = one_chat(tx, name)
    newest = run_views.runs_listed(tx, RunFilter(chats=(chat,), limit=_NEWEST), lease)
    return chat_views.chats_listed(tx, [chat])[0], newest, timeline.chat_events(tx, chat, _NEWEST)


@app.command(context_settings=options.TAKES_A_CHAT)
@options.grouped()
def pause(
    chat: options.Chats,
    *,
    minutes: Annotated[
        float | None, typer.Option("--for", min=0.01, help="Minutes; else until resumed.")
    ] = None,
    acting: options.Acting,
) -> None:
    """Stop the agent in chats, so that a person can answer by hand. What comes meanwhile is
    recorded and waits.

    For example: chats pause -1001234567890123 --for 60
    """
    seconds = None if minutes is None else minutes * 60
    apply_to(named(given(chat), one_chat), partial(chats.pause, seconds=seconds), acting)


@app.command(context_settings=options.TAKES_A_CHAT)
@options.grouped()
def resume(
    chat: options.Chats,
    *,
    drop: Annotated[
        bool, typer.Option("--drop/--answer", help="Cancel what waited, or answer it.")
    ] = False,
    acting: options.Acting,
) -> None:
    """Let the agent answer again. What waited is answered in order, unless somebody answered
    it by hand; --drop cancels it.

    For example: chats resume -1001234567890123
    """
    apply_to(named(given(chat), one_chat), partial(chats.resume, drop=drop), acting)


@app.command(context_settings=options.TAKES_A_CHAT)
@options.grouped(without=["yes"])
def reply(
    chat: options.Chat,
    text: Annotated[str, typer.Argument(help="What is sent (Markdown); - reads it.")],
    *,
    acting: options.Acting,
) -> None:
    """Write to a chat by hand. What the person wrote before then counts as answered.

    For example: chats reply 12 "Your order left today."
    """
    words = sys.stdin.read() if text == "-" else text
    apply_to(named([chat], one_chat), partial(chats.reply, text=words), acting)


@app.command(context_settings=options.TAKES_A_CHAT)
@options.grouped(without=["dry_run"])
def forget(chat: options.Chat, *, acting: options.Acting) -> None:
    """Delete everything that was said in a chat, for ever. Who, when and what became of it
    stay for the audit; so does the address.

    For example: chats forget whatsapp:+15551234567 --yes
    """

    async def work(session: OperatorSession) -> int:
        number = await session.rt.db.read(one_chat, chat)
        if not acting.yes and not typer.confirm(f"Delete every text of chat {number} for ever?"):
            raise CommandFailed("nothing was done")
        by = operator_of(acting)
        return await apply_each([lambda: chats.forget(session.rt, by, number)], acting)

    raise typer.Exit(in_session(work))
