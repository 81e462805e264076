"""An operator for tests, and actions in a running process."""

from __future__ import annotations

from collections.abc import Callable

from bot.domain.ending import Ending
from bot.operations import runs
from bot.operations.actions import Acted, Operator, apply
from storage.statements.tx import Tx
from tests.world import Running, World

ANN = Operator("ann@session", "a test")


async def act(process: Running, what: Callable[[Tx], Acted], *, dry_run: bool = False) -> Acted:
    """Do an act as the command line does, with this process's tools."""
    return await apply(process.process.rt, what, dry_run=dry_run)


async def requeue(
    process: Running, run: int, *, may_duplicate: bool = False, dry_run: bool = False
) -> Acted:
    rt = process.process.rt
    return await act(
        process,
        lambda tx: runs.requeue(tx, rt, ANN, run, may_duplicate=may_duplicate),
        dry_run=dry_run,
    )


async def close(process: Running, run: int, wanted: Ending, by: Operator = ANN) -> Acted:
    rt = process.process.rt
    return await act(process, lambda tx: runs.close(tx, rt, by, run, wanted))


async def apologise(process: Running, run: int) -> Acted:
    rt = process.process.rt
    return await act(process, lambda tx: runs.apologise(tx, rt, ANN, run))


async def runs_of(world: World) -> list[tuple[int, str, str | None]]:
    """(id, state, ending) of every run, in order."""
    rows = await world.rows("SELECT id, state, ending FROM runs ORDER BY id")
    return [tuple(row) for row in rows]


async def noted(world: World, run: int) -> list[tuple[str, str, str]]:
    """(who, what, why) of the operator's events on a run."""
    rows = await world.rows(
        "SELECT who, what, why FROM events WHERE run = :run AND who = 'ann@session' ORDER BY id",
        run=run,
    )
    return [tuple(row) for row in rows]
