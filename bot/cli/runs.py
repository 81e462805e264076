"""`answerback runs | status | explain`: the obligations to answer, and acts on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Annotated, Literal, NoReturn

import typer

from bot.cli import options, render
from bot.cli.apply import Action, apply_to, given, named
from bot.cli.session import DONE, MISUSED, NOT_DONE, CommandFailed, chats_of, in_session, one_run
from bot.cli.shapes import moment_shape, part_shape, run_shape, shape, shown
from bot.cli.wording import moment, span, without_numbers
from bot.domain.ending import ByHand, Ending
from bot.intake.status import turn_status
from bot.operations import runs
from bot.operations.explain import Explained, explain_run
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
@options.grouped()
def list_(
    *,
    choice: options.Choice,
    before: options.Before = None,
    limit: options.Limit = 50,
    addresses: options.Addresses = False,
    json: options.Json = False,
) -> None:
    """List runs, newest first; phone numbers are cut short.

    For example: runs list --ending failed --newer 3600
    """

    listed = in_session(lambda session: _listed(session, choice, limit, before))
    found = shown(listed, whole=addresses)
    head = ("id", "request", "channel", "chat", "state", "attempts", "age", "holder", "detail")
    render.listing(found, run_shape, head, _row, json=json)
    if len(found) == limit and not json:
        render.lines([f"more: --before {found[-1].id}"])


async def _listed(
    session: OperatorSession, choice: options.Choice, limit: int, before: int | None = None
) -> Sequence[RunLine]:
    wanted = RunFilter(
        states=tuple(choice.state or ()),
        endings=tuple(choice.ending or ()),
        channel=choice.channel,
        chats=await chats_of(session, choice.chat),
        older=choice.older,
        newer=choice.newer,
        error=choice.error,
        before=before,
        limit=limit,
    )
    return await session.rt.db.read(run_views.runs_listed, wanted, session.settings.lease_seconds)


def state_of(run: RunLine) -> str:
    """The run's ending, or its state while it has none."""
    return run.state.value if run.ending is None else run.ending.value


def _row(run: RunLine) -> tuple[object, ...]:
    more = f" +{len(run.requests) - 1}" if len(run.requests) > 1 else ""
    topic = f"/{run.topic}" if run.topic else ""
    return (
        run.id,
        f"{run.request_id}{more}",
        run.channel,
        f"{run.chat} ({run.address}{topic})",
        state_of(run),
        run.attempts,
        span(run.age),
        run.holder + ("" if run.holder_alive or not run.holder else " (dead)"),
        run.set_aside or run.detail,
    )


@app.command()
def show(
    run: options.Run,
    *,
    text: options.Texts = False,
    addresses: options.Addresses = False,
    json: options.Json = False,
) -> None:
    """Show one run and everything that happened to it, in one time line.

    For example: runs show tg-700100201-42 --text
    """
    line, course, sent, spent = in_session(
        lambda session: session.rt.db.read(_whole, run, session.settings.lease_seconds)
    )
    [line], course = shown([line], whole=addresses), shown(course, whole=addresses)
    sent = shown(sent, whole=addresses)
    if not addresses:
        course = [replace(moment, what=without_numbers(moment.what)) for moment in course]
    if json:
        render.as_json(
            {
                **run_shape(line),
                "timeline": [moment_shape(m, text=text) for m in course],
                "parts": [part_shape(p, text=text) for p in sent],
                "usage": asdict(spent),
            }
        )
        return
    what = line.state.value if line.ending is None else f"ended, {line.ending.value}"
    said = f": {line.set_aside or line.detail}" if line.set_aside or line.detail else ""
    place = f"chat {line.chat} ({line.channel} {line.address})"
    render.lines(
        [
            f"run {line.id} is {what}{said}",
            f"made {span(line.age)} ago in {place}",
            f"answers {', '.join(line.requests) or line.request_id}",
            *([] if line.ending is None else [line.ending.rule.says]),
        ]
    )
    if spent.calls:
        again = f", {spent.cut_off} cut off and made again" if spent.cut_off else ""
        failed = f", {spent.failed} refused" if spent.failed else ""
        tokens = f"{spent.input_tokens} tokens in, {spent.output_tokens} out"
        render.lines([f"{spent.calls} model calls{failed}{again}; {tokens}"])
    print_course(course, text=text)


def _whole(
    tx: Tx, name: str, lease: float
) -> tuple[RunLine, Sequence[Moment], Sequence[PartLine], Usage]:
    run = one_run(tx, name)
    line = run_views.run_line(tx, run, lease)
    assert line is not None
    sent = parts.parts_listed(tx, PartFilter(runs=(run,), limit=AT_MOST))
    return line, timeline.timeline(tx, run), sent, usage.of_run(tx, run)


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

    async def work(session: OperatorSession) -> Explained:
        rt, lease = session.rt, session.settings.lease_seconds
        return await rt.db.read(lambda tx: explain_run(tx, rt, one_run(tx, run), lease))

    found = in_session(work, speaks=True)
    if json:
        render.as_json(shape(found, evidence=dict(found.evidence)))
        return
    render.lines([f"run {found.run}: {found.says}"])
    render.table(("evidence", ""), found.evidence)
    if found.act:
        render.lines([f"next: {found.act}"])


@app.command()
@options.grouped()
def requeue(
    *,
    run: options.Runs = None,
    choice: options.Choice,
    may_duplicate: Annotated[
        bool, typer.Option("--may-duplicate", help="Send although the person may have it already.")
    ] = False,
    acting: options.Acting,
) -> None:
    """Let runs be worked on again: take them from a dead process, end their waiting, send what
    is stored, or work on their messages anew. What was answered is refused.

    For example: runs requeue 12 --reason "the model is back"
    """
    _apply(run, choice, partial(runs.requeue, may_duplicate=may_duplicate), acting)


As = Literal[ByHand, "apologise"]
"""Ways to close a run by hand: an ending, or an apology that ends it."""


@app.command()
@options.grouped()
def close(
    *,
    wanted_as: Annotated[As, typer.Option("--as", help="How it ends.")],
    run: options.Runs = None,
    choice: options.Choice,
    acting: options.Acting,
) -> None:
    """End runs by hand. Nothing of them is sent any more; `answered` needs that somebody
    answered, or --reason. `apologise` is `runs apologise`.

    For example: runs close 12 --as cancelled
    """
    by_hand: Action = (
        runs.apologise
        if wanted_as == "apologise"
        else partial(runs.close, wanted=Ending(wanted_as))
    )
    _apply(run, choice, by_hand, acting)


@app.command()
@options.grouped(without=["ending"])
def apologise(*, run: options.Runs = None, choice: options.Choice, acting: options.Acting) -> None:
    """Give runs up: the person is told once, and asked to send the message again.

    For example: runs apologise --state ready --older 3600 --dry-run
    """
    _apply(run, choice, runs.apologise, acting)


def _apply(
    names: list[str] | None, choice: options.Choice, action: Action, acting: options.Acting
) -> NoReturn:
    """Apply an action to the runs that are named, or to those that the filter finds."""
    chosen = choice != options.Choice()
    if not names and not chosen:
        raise CommandFailed("name runs, or choose them with a filter such as --state", MISUSED)
    if names and chosen:
        raise CommandFailed("give either runs or a filter, not both", MISUSED)

    async def oldest_first(session: OperatorSession) -> Sequence[int]:
        return sorted(line.id for line in await _listed(session, choice, AT_MOST))

    apply_to(oldest_first if chosen else named(given(names or ()), one_run), action, acting)


def status(
    request_id: Annotated[str, typer.Argument(help="As in tg-<chat>-<message>.")],
    *,
    json: options.Json = False,
) -> None:
    """Say what became of a message and what to do now. The exit code is 1 when the right
    reaction is to send it again, else 0.

    For example: status tg-700100201-42
    """
    answer = in_session(lambda session: session.rt.db.read(turn_status, request_id))
    if json:
        render.as_json(shape(answer))
    else:
        stored = ["", *answer.answer.split("\n")] if answer.answer else []
        render.lines([f"{answer.status.value}: {answer.text}", *stored])
    raise typer.Exit(NOT_DONE if answer.send_again else DONE)


def explain(*, json: options.Json = False) -> None:
    """Print every way in which a run may end, what it means and who acts then.

    For example: explain
    """
    rows = [(e.value, e.rule.says, e.rule.reaction.value) for e in Ending]
    if json:
        keys = ("ending", "sentence", "reaction")
        render.as_json([dict(zip(keys, row, strict=True)) for row in rows])
    else:
        render.table(("ending", "what it means", "who acts"), rows)
