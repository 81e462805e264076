"""`answerback runs | status | explain`: the obligations to answer, and acts on them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NoReturn, get_args

import typer

from bot.cli import options
from bot.cli.apply import Action, apply_to, given, named
from bot.cli.output import render
from bot.cli.output.course import print_course
from bot.cli.output.layout import Column, Slot, quoted
from bot.cli.output.shapes import moment_shape, part_shape, run_shape, shape
from bot.cli.output.wording import TO_BEGIN
from bot.cli.session import DONE, MISUSED, NOT_DONE, CommandFailed, chats_of, in_session, one_run
from bot.domain.clients.turn_answer import TurnAnswer
from bot.domain.ending import ByHand, Ending
from bot.domain.message import shortened
from bot.lazy_imports import lazy_imports
from bot.operations.reports.seen import Seen, look
from bot.operations.reports.shortening import shortened_in, shown, shown_course, shown_verdict

with lazy_imports(__name__):
    from bot.intake.status import turn_status
    from bot.operations import runs
    from bot.operations.reports.explain import Explained, explain_run
    from bot.operations.reports.picture import draw_run
    from bot.operations.reports.stuck import Stuck, stuck_of_run, told_of_run
    from bot.operations.reports.told import what_was_told
    from bot.wiring import OperatorSession
    from storage.statements.tx import Tx
    from storage.views import lookup, parts, timeline, usage
    from storage.views import runs as run_views
    from storage.views.parts import PartFilter, PartLine
    from storage.views.runs import RunFilter, RunLine
    from storage.views.timeline import Moment
    from storage.views.usage import Usage

app = typer.Typer(no_args_is_help=True, help="Runs: the obligations to answer, and acts on them.")
AT_MOST = 1000
"""The most runs that one call changes."""


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

    For example: answerback runs list --ending failed --newer 3600
    """

    async def work(session: OperatorSession) -> tuple[Sequence[RunLine], Seen]:
        listed = await _listed(session, choice, limit, before)
        return listed, await session.rt.db.read(look)

    listed, seen = in_session(work)
    found = shown(listed, whole=addresses)
    chosen = choice != options.Choice() or before is not None
    none = _NONE_MATCHES if chosen else f"no runs yet: {TO_BEGIN}"
    render.listing(found, run_shape, _COLUMNS, partial(_row, seen=seen), none=none, json=json)
    if len(found) == limit and not json:
        render.lines([f"more: --before {found[-1].id}"])


_NONE_MATCHES = "no run matches; `answerback runs list` without a filter shows the newest"


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


def _state_of(run: RunLine) -> str:
    """The run's ending, or its state while it has none."""
    return run.state.value if run.ending is None else run.ending.value


_COLUMNS = (
    *(Column("run", Slot.NUMBER), Column("request", Slot.TITLE), Column("state", Slot.TITLE)),
    *(Column(name) for name in ("account", "chat", "made", "attempts", "holder")),
    Column("detail", Slot.PROSE),
)


def _row(run: RunLine, seen: Seen) -> tuple[object, ...]:
    more = f" +{len(run.requests) - 1}" if len(run.requests) > 1 else ""
    return (
        run.id,
        f"{run.request_id}{more}",
        _state_of(run),
        seen.labels.get(run.account, run.channel),
        _chat_of(run),
        seen.when(run.created_at),
        run.attempts,
        run.holder + ("" if run.holder_alive or not run.holder else " (dead)"),
        run.set_aside or run.detail,
    )


def _chat_of(run: RunLine) -> str:
    """The run's chat: its number, and where it is on its platform."""
    return f"{run.chat} ({run.address}{f'/{run.topic}' if run.topic else ''})"


@app.command()
def show(
    run: options.Run,
    file: Annotated[
        Path | None, typer.Argument(help="With --svg: the picture's file.", metavar="[FILE]")
    ] = None,
    *,
    text: options.Texts = False,
    addresses: options.Addresses = False,
    svg: Annotated[
        bool, typer.Option("--svg", help="Draw it, as SVG, into FILE or to standard output.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Show one run and everything that happened to it, in one time line.

    For example: answerback runs show tg-700100201-42 --text
    """
    if svg and json:
        raise CommandFailed("give either --svg or --json, not both", MISUSED)
    if file is not None and not svg:
        raise CommandFailed("a file is for a picture: give --svg with it", MISUSED)
    if svg:
        _keep(_drawn(run, text=text, addresses=addresses), file)
        return
    found = in_session(
        lambda session: session.rt.db.read(_whole, run, session.settings.lease_seconds)
    )
    [line], course = (
        shown([found.line], whole=addresses),
        shown_course(found.course, whole=addresses),
    )
    if json:
        sent = shown(found.sent, whole=addresses)
        render.as_json(
            {
                **run_shape(line),
                "timeline": [moment_shape(m, text=text) for m in course],
                "parts": [part_shape(p, text=text) for p in sent],
                "usage": asdict(found.spent),
            }
        )
        return
    stuck = shown(found.stuck, whole=addresses)
    told = found.told if addresses else shortened(found.told)
    render.lines(_head(found, line, [told_of_run(item, line.id) for item in stuck], told))
    print_course(course, found.seen.now, text=text)
    if stuck:
        render.next_step(stuck[0].act)
    elif line.ending is None:
        render.next_step(f"answerback runs why {line.id}  # says what may be done with it")


def _drawn(run: str, *, text: bool, addresses: bool) -> str:
    """The run as a picture."""

    async def work(session: OperatorSession) -> tuple[Sequence[Moment], Explained, float]:
        rt, lease = session.rt, session.settings.lease_seconds

        def read(tx: Tx) -> tuple[Sequence[Moment], Explained, float]:
            number = one_run(tx, run)
            course = timeline.timeline(tx, number)
            return course, explain_run(tx, rt, number, lease), look(tx).now

        return await rt.db.read(read)

    course, why, now = in_session(work, speaks=True)
    why = shown_verdict(why, whole=addresses)
    return draw_run(shown_course(course, whole=addresses), why, now, text=text)


def _keep(picture: str, file: Path | None) -> None:
    """Write the picture into its file, or print it. Raises CommandFailed."""
    if file is None:
        sys.stdout.write(picture)
        return
    try:
        file.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"the picture was not written: {error}", MISUSED) from error
    render.lines([f"the picture is in {file}"])


def _head(found: _Whole, line: RunLine, causes: Sequence[str], told: str) -> Sequence[str]:
    said = line.set_aside or line.detail
    twice = not said or any(said in cause for cause in causes)
    means = [line.ending.rule.says] if line.ending is not None and not causes else []
    means += [told] if told else []
    made = f"made {found.seen.when(line.created_at)} in chat {_chat_of(line)}"
    return [
        _stands(line) + ("" if twice else f": {said}"),
        *causes,
        *([" ".join(means)] if means else []),
        f"{made} of {found.seen.labels.get(line.account, line.channel)}",
        f"answers {', '.join(line.requests) or line.request_id}",
        *([_usage(found.spent)] if found.spent.calls else []),
    ]


def _stands(run: RunLine) -> str:
    state = f"is {run.state.value}" if run.ending is None else f"ended as {run.ending.value}"
    return f"run {run.id} {state}"


def _usage(spent: Usage) -> str:
    again = f", {spent.cut_off} cut off and made again" if spent.cut_off else ""
    failed = f", {spent.failed} refused" if spent.failed else ""
    tokens = f"{spent.input_tokens} tokens in, {spent.output_tokens} out"
    calls = f"{spent.calls} model call{'' if spent.calls == 1 else 's'}"
    return f"{calls}{failed}{again}; {tokens}"


@dataclass(frozen=True, slots=True)
class _Whole:
    """A run, and everything that is shown of it."""

    line: RunLine
    course: Sequence[Moment]
    sent: Sequence[PartLine]
    spent: Usage
    stuck: Sequence[Stuck]
    told: str
    seen: Seen


def _whole(tx: Tx, name: str, lease: float) -> _Whole:
    run = one_run(tx, name)
    line = run_views.run_line(tx, run, lease)
    assert line is not None
    return _Whole(
        line,
        timeline.timeline(tx, run),
        parts.parts_listed(tx, PartFilter(runs=(run,), limit=AT_MOST)),
        usage.of_run(tx, run),
        stuck_of_run(tx, line, lease),
        what_was_told(tx, line),
        look(tx),
    )


@app.command()
def why(run: options.Run, *, json: options.Json = False) -> None:
    """Say what may be done with a run now and what shows it. Nothing is changed.

    For example: answerback runs why 12
    """

    async def work(session: OperatorSession) -> Explained:
        rt, lease = session.rt, session.settings.lease_seconds
        return await rt.db.read(lambda tx: explain_run(tx, rt, one_run(tx, run), lease))

    found = shortened_in(in_session(work, speaks=True))
    if json:
        render.as_json(shape(found, evidence=dict(found.evidence)))
        return
    render.lines([f"run {found.run}: {found.says}"])
    render.table((Column("evidence", Slot.TITLE), Column("", Slot.PROSE)), found.evidence)
    if found.act:
        render.next_step(found.act)


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

    For example: answerback runs requeue 12 --reason "the model is back"
    """
    _apply(run, choice, partial(runs.requeue, may_duplicate=may_duplicate), acting)


As = Literal[ByHand, "apologise"]
"""Ways to close a run by hand: an ending, or an apology that ends it."""
_BY_HAND = options.one_of([*get_args(ByHand), "apologise"])


@app.command()
@options.grouped()
def close(
    *,
    wanted_as: Annotated[
        As, typer.Option("--as", help=f"The ending: {_BY_HAND}.", metavar="ENDING")
    ],
    run: options.Runs = None,
    choice: options.Choice,
    acting: options.Acting,
) -> None:
    """End runs by hand. Nothing of them is sent any more; `answered` needs that somebody
    answered, or --reason. `apologise` is `runs apologise`.

    For example: answerback runs close 12 --as cancelled
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

    For example: answerback runs apologise --state ready --older 3600 --dry-run
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
    request_id: Annotated[
        str, typer.Argument(help="A message, by its request id.", metavar="REQUEST")
    ],
    *,
    text: Annotated[bool, typer.Option("--text", help="Show the stored answer.")] = False,
    json: options.Json = False,
) -> None:
    """Say what became of a message and what to do now. The exit code is 1 when the right
    reaction is to send it again, else 0.

    For example: answerback status tg-700100201-42
    """
    found = in_session(
        lambda session: session.rt.db.read(_status, request_id, session.settings.lease_seconds)
    )
    answer = found.answer
    if json:
        render.as_json(shape(answer))
    else:
        _tell_status(found, text=text)
    raise typer.Exit(NOT_DONE if answer.send_again else DONE)


@dataclass(frozen=True, slots=True)
class _Status:
    """The turn status of a message, its run if it has one, and what is stuck of that run."""

    answer: TurnAnswer
    run: RunLine | None = None
    stuck: Sequence[Stuck] = ()


def _status(tx: Tx, request_id: str, lease: float) -> _Status:
    answer, said = turn_status(tx, request_id), lookup.recorded_under(tx, request_id, None)
    run = None if said is None or said.run is None else run_views.run_line(tx, said.run, lease)
    if run is None:
        return _Status(answer)
    return _Status(answer, run, shown(stuck_of_run(tx, run, lease), whole=False))


def _tell_status(found: _Status, *, text: bool) -> None:
    answer, run = found.answer, found.run
    render.lines([f"{answer.status.value}: {answer.text}"])
    if answer.answer:
        hidden = f"its answer has {len(answer.answer)} characters; --text shows it"
        render.lines(quoted(answer.answer).split("\n") if text else [hidden])
    if run is not None:
        render.lines([_stands(run), *(told_of_run(item, run.id) for item in found.stuck)])
    if found.stuck:
        render.next_step(found.stuck[0].act)


def explain(*, json: options.Json = False) -> None:
    """Print every way in which a run may end, what it means and what follows.

    For example: answerback explain
    """
    rows = [(e.value, e.rule.says, e.rule.reaction.value) for e in Ending]
    if json:
        keys = ("ending", "sentence", "reaction")
        render.as_json([dict(zip(keys, row, strict=True)) for row in rows])
    else:
        ending, means = Column("ending", Slot.TITLE), Column("what it means", Slot.PROSE)
        render.table((ending, means, Column("what follows")), rows)
