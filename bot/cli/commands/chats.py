"""`answerback chats`: conversations, and taking one over by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bot.cli import options
from bot.cli.apply import apply_each, apply_to, given, named
from bot.cli.output import render
from bot.cli.output.course import print_conversation, print_course
from bot.cli.output.layout import Column, Slot, quoted
from bot.cli.output.shapes import (
    FOR_EVER,
    Shape,
    chat_shape,
    moment_shape,
    run_shape,
    said_shape,
    shape,
)
from bot.cli.output.wording import TO_BEGIN
from bot.cli.session import (
    DONE,
    MISUSED,
    CommandFailed,
    in_session,
    one_chat,
    operator_of,
    words_given,
)
from bot.domain.errors import NotAttached
from bot.domain.run import RunState
from bot.lazy_imports import lazy_imports
from bot.operations.reports.seen import Seen, look
from bot.operations.reports.shortening import shown

with lazy_imports(__name__):
    import mimetypes

    from bot.cli.commands import exporting
    from bot.domain.clients.desk import StoredFile
    from bot.leases.runtime import Runtime
    from bot.operations import chats
    from bot.operations.actions import Acted, Operator, Subject
    from bot.operations.attached import Host, attach
    from bot.operations.canned import canned_texts
    from bot.operations.reports.phrases import counted
    from bot.operations.reports.stuck import Stuck, uncertain
    from bot.wiring import OperatorSession, read_settings
    from storage.operators import hand_replies, notes
    from storage.operators.notes import Note
    from storage.statements.tx import Tx
    from storage.views import chats as chat_views
    from storage.views import handoffs, timeline
    from storage.views import runs as run_views
    from storage.views.chats import ChatLine
    from storage.views.conversation import Heard, Said, conversation
    from storage.views.handoffs import Wanted
    from storage.views.runs import RunFilter, RunLine
    from storage.views.timeline import Moment

app = typer.Typer(no_args_is_help=True, help="Chats, and taking one over by hand.")
_NEWEST = 20


@app.command("list")
def list_(
    *,
    paused: Annotated[bool, typer.Option("--paused", help="Only paused ones.")] = False,
    unreachable: Annotated[
        bool, typer.Option("--unreachable", help="Only those that nothing reaches.")
    ] = False,
    wanted: Annotated[
        bool, typer.Option("--wanted", help="Only those that want a person.")
    ] = False,
    limit: options.Limit = 50,
    addresses: options.Addresses = False,
    json: options.Json = False,
) -> None:
    """List chats: those that want a person first, who waits longest at the top, then those heard
    last; phone numbers are cut short.

    For example: answerback chats list --wanted
    """

    def ask(tx: Tx) -> tuple[Sequence[ChatLine], Seen, Mapping[int, Wanted]]:
        listed = partial(chat_views.chats_listed, tx, paused=paused, unreachable=unreachable)
        wants = {one.chat: one for one in handoffs.wanted(tx)}
        first = {line.id: line for line in listed(list(wants), limit=len(wants) or 1)}
        every = [first[chat] for chat in wants if chat in first][:limit]
        if not wanted and len(every) < limit:
            every += listed(but=list(wants), limit=limit - len(every))
        return every, look(tx), wants

    listed, seen, wants = in_session(lambda session: session.rt.db.read(ask))
    found = shown(listed, whole=addresses)
    chosen = paused or unreachable or wanted
    none = (
        "no such chat; `answerback chats list` shows all" if chosen else f"no chats yet: {TO_BEGIN}"
    )
    row, as_json = partial(_row, seen=seen, wants=wants), partial(_listed_shape, wants=wants)
    render.listing(found, as_json, _COLUMNS, row, none=none, json=json)


_COLUMNS = (
    *(Column("chat", Slot.NUMBER), Column("channel", Slot.TITLE), Column("address", Slot.TITLE)),
    *(Column(name) for name in ("account", "kind", "last heard", "live runs")),
    *(Column("state", Slot.PROSE), Column("name", Slot.PROSE)),
)


def _listed_shape(chat: ChatLine, wants: Mapping[int, Wanted]) -> Shape:
    return chat_shape(chat, wants_person=chat.id in wants)


def _row(chat: ChatLine, seen: Seen, wants: Mapping[int, Wanted]) -> tuple[object, ...]:
    heard = "" if chat.last_inbound_at is None else seen.when(chat.last_inbound_at)
    who = (chat.id, chat.channel, _address(chat), chat.bot or chat.account, chat.kind)
    return (*who, heard, chat.live, ", ".join(_states(chat, seen, wants.get(chat.id))), chat.name)


def _address(chat: ChatLine) -> str:
    return f"{chat.address}/{chat.topic}" if chat.topic else chat.address


def _states(chat: ChatLine, seen: Seen, wanted: Wanted | None) -> Sequence[str]:
    states = []
    paused = chat.paused_until is not None and chat.paused_until > seen.now
    if wanted is not None:
        waits = f", {counted(wanted.messages, 'message')} waiting" if wanted.messages else ""
        states.append(f"wants a person since {seen.when(seen.now - wanted.since)}{waits}")
    elif paused and chat.handoff_at is not None:
        states.append(f"paused: its agent asked for a person {seen.when(chat.handoff_at)}")
    elif paused and chat.paused_until is not None:
        ends = chat.paused_until < FOR_EVER
        states.append(f"paused until {seen.when(chat.paused_until)}" if ends else "paused")
    if chat.unreachable_since is not None:
        since = seen.when(chat.unreachable_since)
        states.append(f"unreachable since {since}: {chat.unreachable_reason}")
    if chat.opted_out_at is not None:
        states.append(f"opted out {seen.when(chat.opted_out_at)}")
    return states


@app.command(context_settings=options.TAKES_A_CHAT)
def show(chat: options.Chat, *, text: options.Texts = False, json: options.Json = False) -> None:
    """Show a chat: what was said in it last, and what happened to it.

    For example: answerback chats show -1001234567890123 --text
    """
    found = in_session(
        lambda session: session.rt.db.read(_whole, chat, session.settings.lease_seconds)
    )
    line, seen = found.line, found.seen
    if json:
        render.as_json(
            {
                **chat_shape(line, wants_person=found.wanted is not None),
                **({"handoff_reason": found.reason} if text else {}),
                "notes": [shape(one, "" if text else "text") for one in found.notes],
                "last_said": found.last_said,
                "runs": [run_shape(run) for run in found.newest],
                "events": [moment_shape(m, text=False) for m in found.course],
                "conversation": [said_shape(one, text=text) for one in found.talk],
            }
        )
        return
    named = f", {line.name}" if line.name else ""
    bot = f"{line.channel} {line.bot or line.account}"
    states = _states(line, seen, found.wanted)
    render.lines([f"chat {line.id} ({_address(line)}) of {bot}{named}", *states])
    if found.reason:
        hidden = f"the agent's reason has {len(found.reason)} characters; --text shows it"
        render.lines(quoted(found.reason).split("\n") if text else [hidden])
    _print_notes(found.notes, seen, text=text)
    if found.talk:
        print_conversation(found.talk, seen.now, text=text)
    else:
        render.lines(["nothing was said yet"])
    if besides := [m for m in found.course if not m.what.startswith("ended ")]:
        render.lines(["", "what else happened to it:"])
        print_course(besides, seen.now, text=False)
    for act in _next(found):
        render.next_step(act)


def _print_notes(kept: Sequence[Note], seen: Seen, *, text: bool) -> None:
    """Print colleagues' notes, oldest first; their text only with `text`."""
    for one in kept:
        long = "" if text else f": {len(one.text)} characters; --text shows them"
        render.lines([f"note of {one.who} {seen.when(one.at)}{long}"])
        if text and one.text:
            render.lines(quoted(one.text).split("\n"))


def _next(found: _Whole) -> Iterator[str]:
    """The next commands, if the chat waits for some."""
    for item in found.doubts:
        yield item.act
    if found.wanted is not None:
        yield f"answerback chats reply {found.line.id} TEXT  # then `chats resume` gives it back"
    until, number = found.line.paused_until, found.line.id
    head = next((run for run in found.newest if run.state in _HEADS), None)
    if until is not None and until > found.seen.now:
        yield f"answerback chats resume {number}  # answers what waits; --drop cancels it"
    elif head is not None:
        yield f"answerback runs why {head.id}  # says what it waits for"


_HEADS = (RunState.READY, RunState.RUNNING)


@dataclass(frozen=True, slots=True)
class _Whole:
    """A chat, and everything that is shown of it."""

    line: ChatLine
    newest: Sequence[RunLine]
    course: Sequence[Moment]
    talk: Sequence[Heard | Said]
    doubts: Sequence[Stuck]
    seen: Seen
    wanted: Wanted | None
    reason: str
    notes: Sequence[Note]
    last_said: int


def _whole(tx: Tx, name: str, lease: float) -> _Whole:
    chat = one_chat(tx, name)
    return _Whole(
        chat_views.chats_listed(tx, [chat])[0],
        run_views.runs_listed(tx, RunFilter(chats=(chat,), limit=_NEWEST), lease),
        timeline.chat_events(tx, chat, _NEWEST),
        conversation(tx, chat, _NEWEST).lines,
        uncertain(tx, chat),
        look(tx),
        next(iter(handoffs.wanted(tx, chat)), None),
        handoffs.reason(tx, chat),
        notes.listed(tx, chat, _NEWEST),
        hand_replies.last_said(tx, chat).part,
    )


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

    For example: answerback chats pause -1001234567890123 --for 60
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

    For example: answerback chats resume -1001234567890123
    """
    apply_to(named(given(chat), one_chat), partial(chats.resume, drop=drop), acting)


@app.command(context_settings=options.TAKES_A_CHAT)
@options.grouped(without=["yes"])
def reply(
    chat: options.Chat,
    text: Annotated[
        str,
        typer.Argument(
            help="The words (Markdown); - reads them from standard input.", metavar="TEXT"
        ),
    ] = "",
    *,
    canned: Annotated[
        str, typer.Option(help="The text of this name in CANNED_TEXTS.", metavar="NAME")
    ] = "",
    key: Annotated[
        str,
        typer.Option(
            help="A name for this reply: called again with it, nothing is sent twice.",
            metavar="KEY",
        ),
    ] = "",
    seen: Annotated[
        int | None,
        typer.Option(
            help="Only if nobody on our side said anything after this part.", metavar="PART", min=0
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option("--file", help="Send this file, too.", metavar="FILE", dir_okay=False),
    ] = None,
    acting: options.Acting,
) -> None:
    """Write to a chat by hand. What the person wrote before then counts as answered.

    For example: answerback chats reply 12 "Your order left today."
    """
    form = chats.Form(key, seen)

    def act(tx: Tx, rt: Runtime, by: Operator, number: int) -> Acted:
        host = Host(url, rt.clock.token() + rt.clock.token())
        try:
            attached = [attach(tx, rt, host, number, file) for file in kept]
        except NotAttached as error:
            return Subject(f"chat {number}").refused(str(error))
        return chats.reply(tx, rt, by, number, words, attached=attached, form=form)

    kept, url = [_read(file) for file in files or ()], read_settings().public_url
    words = _canned(canned) if canned else words_given(text)
    apply_to(named([chat], one_chat), act, acting)


def _read(file: Path) -> StoredFile:
    """A file of this machine. Raises CommandFailed."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise CommandFailed(f"{file} can't be read: {error.strerror}", MISUSED) from error
    return StoredFile(file.name, mimetypes.guess_type(file.name)[0] or "", content)


def _canned(name: str) -> str:
    """The canned text of this name. Raises ConfigurationError, CommandFailed."""
    known = canned_texts(read_settings().canned_texts)
    if name not in known:
        there = ", ".join(known) or "there are none: CANNED_TEXTS names their file"
        raise CommandFailed(f"no canned text is named {name}; {there}", MISUSED)
    return known[name]


@app.command(context_settings=options.TAKES_A_CHAT)
@options.grouped(without=["dry_run"])
def forget(chat: options.Chats, *, acting: options.Acting) -> None:
    """Delete everything that was said in chats, for ever. Who, when and what became of it stay for
    the audit; so do addresses. Name every chat of a person who wrote on several platforms.

    For example: answerback chats forget whatsapp:+15551234567 700100201 --yes
    """

    async def work(session: OperatorSession) -> int:
        numbers = await named(given(chat), one_chat)(session)
        listed = " and ".join(f"chat {number}" for number in numbers)
        if not acting.yes and not typer.confirm(f"Delete every text of {listed} for ever?"):
            raise CommandFailed("nothing was done")
        by, rt = operator_of(acting), session.rt
        return await apply_each([partial(chats.forget, rt, by, n) for n in numbers], acting)

    raise typer.Exit(in_session(work))


@app.command(context_settings=options.TAKES_A_CHAT)
@options.grouped(without=["dry_run", "yes", "json"])
def export(
    chat: options.Chats,
    *,
    text: Annotated[
        bool, typer.Option("--text", help="As the people saw it, instead of JSON.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="A new file; else standard output.", metavar="FILE")
    ] = None,
    files: Annotated[
        Path | None, typer.Option(help="A folder for the files that were sent.", metavar="DIR")
    ] = None,
    acting: options.Acting,
) -> None:
    """Write the whole record of chats as JSON, all of it of one moment. Name every chat of a person
    who wrote on several platforms.

    For example: answerback chats export 700100201 whatsapp:+15551234567 --out ada.json
    """

    async def work(session: OperatorSession) -> int:
        numbers = await named(given(chat), one_chat)(session)
        await exporting.export(session, operator_of(acting), numbers, out, files, text=text)
        return DONE

    raise typer.Exit(in_session(work, speaks=files is not None))
