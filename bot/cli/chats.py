"""`answerback chats`: conversations, and taking one over by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from bot.cli import options, render
from bot.cli.acting import Act, Manner, carry_out, do_each
from bot.cli.runs import print_course
from bot.cli.session import CommandFailed, in_session, names_given, one_chat
from bot.cli.shapes import chat_shape, moment_shape, run_shape
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
    json: options.Json = False,
) -> None:
    """List chats, those heard last first.

    For example: chats list --paused
    """

    def ask(tx: Tx) -> Sequence[ChatLine]:
        return chat_views.chats_listed(tx, paused=paused, unreachable=unreachable, limit=limit)

    found = in_session(lambda session: session.rt.db.read(ask))
    if json:
        render.as_json([chat_shape(chat) for chat in found])
        return
    head = ("id", "channel", "address", "kind", "name", "last heard", "live runs", "state")
    render.table(head, [_row(chat) for chat in found])


def _row(chat: ChatLine) -> tuple[object, ...]:
    heard = "" if chat.last_inbound_at is None else moment(chat.last_inbound_at)
    address = f"{chat.address}/{chat.topic}" if chat.topic else chat.address
    return (
        chat.id,
        chat.channel.value,
        address,
        chat.kind,
        chat.name,
        heard,
        chat.live,
        _state(chat),
    )


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
    render.lines([f"chat {line.id}: {line.channel.value} {line.address} {line.name}", _state(line)])
    rows = [
        (r.id, r.request_id, r.state.value if r.ending is None else r.ending.value, span(r.age))
        for r in newest
    ]
    render.table(("run", "request", "state", "age"), rows)
    print_course(course, text=False)


def _whole(tx: Tx, name: str, lease: float) -> tuple[ChatLine, Sequence[RunLine], Sequence[Moment]]:
    chat = one_chat(tx, name)
    newest = run_views.runs_listed(tx, RunFilter(chats=(chat,), limit=_NEWEST), lease)
    return chat_views.chats_listed(tx, [chat])[0], newest, timeline.chat_events(tx, chat, _NEWEST)


@app.command(context_settings=options.TAKES_A_CHAT)
def pause(
    chat: options.Chats,
    *,
    minutes: Annotated[
        float | None, typer.Option("--for", min=0.01, help="Minutes; else until resumed.")
    ] = None,
    reason: options.Reason = "",
    who: options.Who = "",
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Stop the agent in chats, so that a person can answer by hand. What comes meanwhile is
    recorded and waits.

    For example: chats pause -1001234567890123 --for 60
    """
    seconds = None if minutes is None else minutes * 60
    manner = Manner(who, reason, dry_run, yes, json)

    def act(_session: OperatorSession, manner: Manner, number: int) -> Act:
        return lambda tx: chats.pause(tx, manner.operator, number, seconds)

    _for_each(chat, manner, act)


@app.command(context_settings=options.TAKES_A_CHAT)
def resume(
    chat: options.Chats,
    *,
    drop: Annotated[
        bool, typer.Option("--drop/--answer", help="Cancel what waited, or answer it.")
    ] = False,
    reason: options.Reason = "",
    who: options.Who = "",
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Let the agent answer again. What waited is answered in order, unless somebody answered
    it by hand; --drop cancels it.

    For example: chats resume -1001234567890123
    """
    manner = Manner(who, reason, dry_run, yes, json)

    def act(session: OperatorSession, manner: Manner, number: int) -> Act:
        return lambda tx: chats.resume(tx, session.rt, manner.operator, number, drop=drop)

    _for_each(chat, manner, act)


@app.command(context_settings=options.TAKES_A_CHAT)
def reply(
    chat: options.Chat,
    text: Annotated[str, typer.Argument(help="What is sent (Markdown); - reads it.")],
    *,
    reason: options.Reason = "",
    who: options.Who = "",
    dry_run: options.DryRun = False,
    json: options.Json = False,
) -> None:
    """Write to a chat by hand. What the person wrote before then counts as answered.

    For example: chats reply 12 "Your order left today."
    """
    words = sys.stdin.read() if text == "-" else text
    manner = Manner(who, reason, dry_run, json=json)

    async def work(session: OperatorSession) -> int:
        number = await session.rt.db.read(one_chat, chat)
        by = manner.operator
        return await carry_out(
            session, [lambda tx: chats.reply(tx, session.rt, by, number, words)], manner
        )

    raise typer.Exit(in_session(work, tells=True))


@app.command(context_settings=options.TAKES_A_CHAT)
def forget(
    chat: options.Chat,
    *,
    reason: options.Reason = "",
    who: options.Who = "",
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Delete everything that was said in a chat, for ever. Who, when and what became of it
    stay for the audit; so does the address.

    For example: chats forget whatsapp:+15551234567 --yes
    """
    manner = Manner(who, reason, yes=yes, json=json)

    async def work(session: OperatorSession) -> int:
        number = await session.rt.db.read(one_chat, chat)
        if not yes and not typer.confirm(f"Delete every text of chat {number} for ever?"):
            raise CommandFailed("nothing was done")
        return await do_each([lambda: chats.forget(session.rt, manner.operator, number)], manner)

    raise typer.Exit(in_session(work))


def _for_each(
    names: list[str], manner: Manner, act: Callable[[OperatorSession, Manner, int], Act]
) -> None:
    given, piped = names_given(names)
    manner = replace(manner, piped=piped)

    async def work(session: OperatorSession) -> int:
        numbers = [await session.rt.db.read(one_chat, name) for name in given]
        return await carry_out(session, [act(session, manner, n) for n in numbers], manner)

    raise typer.Exit(in_session(work, tells=True))
