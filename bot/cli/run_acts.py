"""`answerback runs requeue | close | apologise`: acts on one run or on many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import typer

from bot.cli import options
from bot.cli.acting import Act, Manner, carry_out
from bot.cli.runs import AT_MOST, chats_of
from bot.cli.session import MISUSED, CommandFailed, in_session, names_given, one_run
from bot.domain.ending import ByHand, Ending
from bot.domain.message import ChannelName
from bot.domain.run import RunState
from bot.operations import runs
from bot.operations.actions import Operator
from bot.wiring import OperatorSession
from storage.views import runs as run_views
from storage.views.runs import RunFilter

As = Literal[ByHand, "apologise"]
"""How a run may be closed by hand."""


def requeue(
    *,
    run: options.Runs = None,
    state: options.States = None,
    ending: options.Endings = None,
    channel: options.OfChannel = None,
    chat: options.OfChats = None,
    older: options.Older = None,
    newer: options.Newer = None,
    error: options.Error = "",
    may_duplicate: options.MayDuplicate = False,
    reason: options.Reason = "",
    who: options.Who = "",
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Let runs be worked on again: take them from a dead process, end their waiting, send what
    is stored, or work on their messages anew. What was answered is refused.

    For example: runs requeue 12 --reason "the model is back"
    """
    wanted = _filter(state, ending, channel, older, newer, error)
    manner = Manner(who, reason, dry_run, yes, json)

    def act(session: OperatorSession, by: Operator, number: int) -> Act:
        return lambda tx: runs.requeue(tx, session.rt, by, number, may_duplicate=may_duplicate)

    _for_each(run, wanted, chat, manner, act)


def close(
    *,
    wanted_as: Annotated[As, typer.Option("--as", help="How it ends.")],
    run: options.Runs = None,
    state: options.States = None,
    ending: options.Endings = None,
    channel: options.OfChannel = None,
    chat: options.OfChats = None,
    older: options.Older = None,
    newer: options.Newer = None,
    error: options.Error = "",
    reason: options.Reason = "",
    who: options.Who = "",
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """End runs by hand. Nothing of them is sent any more; `answered` needs that somebody
    answered, or --reason. `apologise` is `runs apologise`.

    For example: runs close 12 --as cancelled
    """
    wanted = _filter(state, ending, channel, older, newer, error)
    manner = Manner(who, reason, dry_run, yes, json)

    def act(session: OperatorSession, by: Operator, number: int) -> Act:
        if wanted_as == "apologise":
            return lambda tx: runs.apologise(tx, session.rt, by, number)
        return lambda tx: runs.close(tx, session.rt, by, number, Ending(wanted_as))

    _for_each(run, wanted, chat, manner, act)


def apologise(
    *,
    run: options.Runs = None,
    state: options.States = None,
    channel: options.OfChannel = None,
    chat: options.OfChats = None,
    older: options.Older = None,
    newer: options.Newer = None,
    error: options.Error = "",
    reason: options.Reason = "",
    who: options.Who = "",
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Give runs up: the person is told once, and asked to send the message again.

    For example: runs apologise --state ready --older 3600 --dry-run
    """
    wanted = _filter(state, None, channel, older, newer, error)
    manner = Manner(who, reason, dry_run, yes, json)

    def act(session: OperatorSession, by: Operator, number: int) -> Act:
        return lambda tx: runs.apologise(tx, session.rt, by, number)

    _for_each(run, wanted, chat, manner, act)


def _filter(
    state: list[RunState] | None,
    ending: list[Ending] | None,
    channel: ChannelName | None,
    older: float | None,
    newer: float | None,
    error: str,
) -> RunFilter:
    return RunFilter(
        states=tuple(state or ()),
        endings=tuple(ending or ()),
        channel=channel,
        older=older,
        newer=newer,
        error=error,
        limit=AT_MOST,
    )


def _for_each(
    names: list[str] | None,
    wanted: RunFilter,
    chat: list[str] | None,
    manner: Manner,
    act: Callable[[OperatorSession, Operator, int], Act],
) -> None:
    """Do an act on the runs that are named, or on those that the filter finds."""
    given, piped = names_given(names or [])
    manner = replace(manner, piped=piped)

    async def work(session: OperatorSession) -> int:
        numbers = await _numbers(session, given, wanted, chat)
        by = manner.operator
        return await carry_out(session, [act(session, by, n) for n in numbers], manner)

    filtered = wanted.names_any or chat
    if not given and not piped and not filtered:
        raise CommandFailed("name runs, or choose them with a filter such as --state", MISUSED)
    if given and filtered:
        raise CommandFailed("give either runs or a filter, not both", MISUSED)
    raise typer.Exit(in_session(work, tells=True))


async def _numbers(
    session: OperatorSession, given: Sequence[str], wanted: RunFilter, chat: list[str] | None
) -> list[int]:
    """The runs to act on, oldest first; every name is looked up before anything is done."""
    if given:
        found = [await session.rt.db.read(one_run, name) for name in given]
        return list(dict.fromkeys(found))
    if not (wanted.names_any or chat):
        return []
    chosen = replace(wanted, chats=await chats_of(session, chat))
    lines = await session.rt.db.read(run_views.runs_listed, chosen, session.settings.lease_seconds)
    return sorted(line.id for line in lines)
