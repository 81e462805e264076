"""`answerback runs`: the obligations to answer, and what may be done with each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer

from bot.cli import options, render
from bot.cli.session import in_session, one_chat, one_run
from bot.cli.shapes import Shape, moment_shape, part_shape, run_shape
from bot.cli.wording import moment, span
from bot.operations.explain import Judged, judged
from bot.wiring import OperatorSession
from storage.engine.tx import Tx
from storage.views import parts, timeline, usage
from storage.views import runs as run_views
from storage.views.parts import PartFilter, PartLine
from storage.views.runs import RunFilter, RunLine
from storage.views.timeline import Moment
from storage.views.usage import Usage

app = typer.Typer(no_args_is_help=True, help="The obligations to answer, and what may be done.")
AT_MOST = 1000
"""Runs that one act changes at most."""


@app.command("list")
def list_(
    *,
    state: options.States = None,
    ending: options.Endings = None,
    channel: options.OfChannel = None,
    chat: options.OfChats = None,
    older: options.Older = None,
    newer: options.Newer = None,
    error: options.Error = "",
    before: options.Before = None,
    limit: options.Limit = 50,
    json: options.Json = False,
) -> None:
    """List runs, newest first.

    For example: runs list --ending failed --newer 3600
    """

    async def work(session: OperatorSession) -> Sequence[RunLine]:
        chats = await chats_of(session, chat)
        wanted = RunFilter(
            states=tuple(state or ()),
            endings=tuple(ending or ()),
            channel=channel,
            chats=chats,
            older=older,
            newer=newer,
            error=error,
            before=before,
            limit=limit,
        )
        return await session.rt.db.read(run_views.runs_listed, wanted, _lease(session))

    found = in_session(work)
    if json:
        render.as_json([run_shape(run) for run in found])
        return
    head = ("id", "request", "channel", "chat", "state", "attempts", "age", "holder", "detail")
    render.table(head, [_row(run) for run in found])
    if len(found) == limit:
        render.lines([f"more: --before {found[-1].id}"])


def _lease(session: OperatorSession) -> float:
    return session.settings.lease_seconds


def _row(run: RunLine) -> tuple[object, ...]:
    state = run.state.value if run.ending is None else run.ending.value
    more = f" +{len(run.requests) - 1}" if len(run.requests) > 1 else ""
    topic = f"/{run.topic}" if run.topic else ""
    said = run.set_aside or run.detail
    return (
        run.id,
        f"{run.request_id}{more}",
        run.channel.value,
        f"{run.chat} ({run.address}{topic})",
        state,
        run.attempts,
        span(run.age),
        run.holder + ("" if run.holder_alive or not run.holder else " (dead)"),
        said,
    )


async def chats_of(session: OperatorSession, names: list[str] | None) -> tuple[int, ...]:
    """The chats of these names. Raises CommandFailed."""
    return tuple([await session.rt.db.read(one_chat, name) for name in names or ()])


@app.command()
def show(run: options.Run, *, text: options.Texts = False, json: options.Json = False) -> None:
    """Show one run and everything that happened to it, in one time line.

    For example: runs show tg-700100201-42 --text
    """
    line, course, sent, spent = in_session(
        lambda session: session.rt.db.read(_whole, run, _lease(session))
    )
    if json:
        shape: Shape = {
            **run_shape(line),
            "timeline": [moment_shape(m, text=text) for m in course],
            "parts": [part_shape(p, text=text) for p in sent],
            "usage": asdict(spent),
        }
        render.as_json(shape)
        return
    _print_run(line)
    _print_usage(spent)
    print_course(course, text=text)


def _whole(
    tx: Tx, name: str, lease: float
) -> tuple[RunLine, Sequence[Moment], Sequence[PartLine], Usage]:
    run = one_run(tx, name)
    line = run_views.run_line(tx, run, lease)
    assert line is not None
    sent = parts.parts_listed(tx, PartFilter(runs=(run,), limit=AT_MOST))
    return line, timeline.timeline(tx, run), sent, usage.of_run(tx, run)


def _print_run(run: RunLine) -> None:
    what = run.state.value if run.ending is None else f"ended, {run.ending.value}"
    said = f": {run.set_aside or run.detail}" if run.set_aside or run.detail else ""
    render.lines(
        [
            f"run {run.id} is {what}{said}",
            f"made {span(run.age)} ago in chat {run.chat} ({run.channel.value} {run.address})",
            f"answers {', '.join(run.requests) or run.request_id}",
        ]
    )
    if run.ending is not None:
        render.lines([run.ending.rule.says])


def _print_usage(spent: Usage) -> None:
    """What models cost, for a run that called any."""
    if spent.calls:
        again = f", {spent.cut_off} cut off and made again" if spent.cut_off else ""
        failed = f", {spent.failed} refused" if spent.failed else ""
        tokens = f"{spent.input_tokens} tokens in, {spent.output_tokens} out"
        render.lines([f"{spent.calls} model calls{failed}{again}; {tokens}"])


def print_course(course: Sequence[Moment], *, text: bool) -> None:
    """Print what happened, in order."""
    head = ["at", "who", "what", "detail", *(["text"] if text else [])]
    rows = [(moment(m.at), m.who, m.what, m.detail, *([m.text] if text else [])) for m in course]
    render.table(head, rows)


@app.command()
def why(run: options.Run, *, json: options.Json = False) -> None:
    """Say what may be done with a run now and what shows it. Nothing is changed.

    For example: runs why 12
    """

    async def work(session: OperatorSession) -> Judged:
        return await session.rt.db.read(
            lambda tx: judged(tx, session.rt, one_run(tx, run), _lease(session))
        )

    found = in_session(work, speaks=True)
    if json:
        render.as_json(
            {
                "run": found.run,
                "verdict": found.verdict,
                "says": found.says,
                "evidence": dict(found.evidence),
                "act": found.act,
            }
        )
        return
    render.lines([f"run {found.run}: {found.says}"])
    render.table(("evidence", ""), found.evidence)
    if found.act:
        render.lines([f"next: {found.act}"])
