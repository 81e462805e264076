"""Doing acts: one by one, each in its own transaction; many only when somebody said yes."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import typer

from bot.cli import render
from bot.cli.session import DONE, MISUSED, NOT_DONE, CommandFailed, me
from bot.cli.shapes import acted_shape
from bot.operations.actions import Acted, Operator, Result, perform
from bot.wiring import OperatorSession
from storage.engine.tx import Tx

Act = Callable[[Tx], Acted]


@dataclass(frozen=True, slots=True)
class Manner:
    """How acts are done: by whom, why, only rehearsed, without asking, told as JSON.

    `piped` says that the subjects came from standard input, so nobody can be asked.
    """

    who: str = ""
    reason: str = ""
    rehearse: bool = False
    yes: bool = False
    json: bool = False
    piped: bool = False

    @property
    def operator(self) -> Operator:
        return me(self.who, self.reason)


async def carry_out(session: OperatorSession, acts: Sequence[Act], manner: Manner) -> int:
    """Do the acts in order and tell what became of each; returns the exit code.

    Raises CommandFailed, DatabaseUnavailable.
    """
    if not acts:
        render.complain("nothing matches; nothing was done")
        return NOT_DONE
    if len(acts) > 1 and not (manner.yes or manner.rehearse):
        await _ask_first(session, acts, manner)
    return await do_each(
        [lambda act=act: perform(session.rt, act, rehearse=manner.rehearse) for act in acts],  # type: ignore[misc]
        manner,
    )


async def do_each(deeds: Sequence[Callable[[], Awaitable[Acted]]], manner: Manner) -> int:
    """Do each and tell at the end, also of those that were done when one of them broke."""
    told: list[Acted] = []
    try:
        for deed in deeds:
            told.append(await deed())  # noqa: PERF401 - told keeps what was done before a failure
    finally:
        tell(told, manner)
    return DONE if all(acted.result is Result.DONE for acted in told) else NOT_DONE


def tell(told: Sequence[Acted], manner: Manner) -> None:
    """Print what became of acts."""
    if manner.json:
        render.as_json([acted_shape(acted) for acted in told])
        return
    would = "would be " if manner.rehearse else ""
    for acted in told:
        render.lines([f"{acted.subject}: {would}{acted.result.value}: {acted.said}"])


async def _ask_first(session: OperatorSession, acts: Sequence[Act], manner: Manner) -> None:
    """Show the plan and ask; where nobody can be asked, say what to do. Raises CommandFailed."""
    if manner.piped or manner.json or not sys.stdin.isatty():
        raise CommandFailed(
            f"{len(acts)} at once: look at the plan with --dry-run, then give --yes", MISUSED
        )
    plan = [await perform(session.rt, act, rehearse=True) for act in acts]
    tell(plan, Manner(rehearse=True))
    if not typer.confirm(f"Do this for all {len(acts)}?"):
        raise CommandFailed("nothing was done")
