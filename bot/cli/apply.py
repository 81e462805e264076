"""Applying actions one by one, each in its own transaction; several only after a confirmation."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NoReturn

import typer

from bot.cli.options import Acting
from bot.cli.output import render
from bot.cli.output.shapes import shape
from bot.cli.session import DONE, MISUSED, NOT_DONE, CommandFailed, in_session, operator_of
from bot.lazy_imports import lazy_imports

with lazy_imports(__name__):
    from bot.leases.runtime import Runtime
    from bot.operations.actions import Acted, Operator, Result, apply
    from bot.wiring import OperatorSession
    from storage.statements.tx import Tx

Action = Callable[[Tx, Runtime, Operator, int], Acted]
Subjects = Callable[[OperatorSession], Awaitable[Sequence[int]]]
"""Looks up the numbers of the rows that an action is for. Raises CommandFailed."""


def given(names: Sequence[str]) -> list[str]:
    """The names, with `-` replaced by those on standard input: one on each line, or the JSON that a
    listing command prints. Raises CommandFailed."""
    if "-" not in names:
        return list(names)
    try:
        text = sys.stdin.read()
        listed = (
            [str(row["id"]) for row in json.loads(text)]
            if text.lstrip().startswith("[")
            else [line.split()[0] for line in text.splitlines() if line.strip()]
        )
    except (ValueError, TypeError, KeyError) as error:
        raise CommandFailed(
            "standard input is not the JSON of a list that has ids", MISUSED
        ) from error
    return [*(n for n in names if n != "-"), *listed]


def named(names: Sequence[str], find: Callable[[Tx, str], int]) -> Subjects:
    """The subjects with these names, each once. All are looked up before anything is done."""

    async def subjects(session: OperatorSession) -> Sequence[int]:
        found = [await session.rt.db.read(find, name) for name in names]
        return list(dict.fromkeys(found))

    return subjects


def apply_to(subjects: Subjects, action: Action, acting: Acting, *, tells: bool = True) -> NoReturn:
    """Apply an action to each subject in order, print the outcomes, and exit. With `tells` running
    processes are told at once. Raises CommandFailed, DatabaseUnavailable."""
    by = operator_of(acting)

    async def work(session: OperatorSession) -> int:
        rt = session.rt

        def bound(number: int) -> Callable[[Tx], Acted]:
            return lambda tx: action(tx, rt, by, number)

        acts = [bound(number) for number in await subjects(session)]
        if not acts:
            raise CommandFailed("nothing matches; nothing was done")
        if len(acts) > 1 and not (acting.yes or acting.dry_run):
            if acting.json or not sys.stdin.isatty():
                raise CommandFailed(
                    f"{len(acts)} at once: look at the plan with --dry-run, then give --yes",
                    MISUSED,
                )
            _tell([await apply(rt, act, dry_run=True) for act in acts], Acting(dry_run=True))
            if not typer.confirm(f"Do this for all {len(acts)}?"):
                raise CommandFailed("nothing was done")
        return await apply_each(
            [partial(apply, rt, a, dry_run=acting.dry_run) for a in acts], acting
        )

    raise typer.Exit(in_session(work, tells=tells))


async def apply_each(acts: Sequence[Callable[[], Awaitable[Acted]]], acting: Acting) -> int:
    """Do each act, and print the outcomes at the end; if one raises, the outcomes so far."""
    told: list[Acted] = []
    try:
        for act in acts:
            told.append(await act())  # noqa: PERF401 - told keeps what was done before a failure
    finally:
        _tell(told, acting)
    return DONE if all(acted.result is Result.DONE for acted in told) else NOT_DONE


def _tell(told: Sequence[Acted], acting: Acting) -> None:
    if acting.json:
        render.as_json([shape(acted, "wake") for acted in told])
        return
    would = "would be " if acting.dry_run else ""
    render.lines([f"{acted.subject}: {would}{acted.result.value}: {acted.said}" for acted in told])
