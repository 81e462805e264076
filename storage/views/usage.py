"""What a run spent on models, from its steps."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import case, func, select, true

from storage.engine.tx import Tx
from storage.schema.tables import runs, steps


@dataclass(frozen=True, slots=True)
class Usage:
    """Model calls of a run. `failed` were refused by the provider; `cut_off` ended with their
    process, may have cost tokens that nobody counted, and were made again by a recovery."""

    calls: int = 0
    failed: int = 0
    cut_off: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


def of_run(tx: Tx, run: int) -> Usage:
    """What this run spent so far."""
    done = case((steps.c.state == "done", 1), else_=0)
    under_way = case(
        (
            (steps.c.state == "started")
            & (runs.c.state == "running")
            & (runs.c.fence == steps.c.fence)
            & (steps.c.begun > steps.c.failed),
            1,
        ),
        else_=0,
    )
    row = tx.execute(
        select(
            func.coalesce(func.sum(steps.c.begun), 0),
            func.coalesce(func.sum(steps.c.failed), 0),
            func.coalesce(func.sum(steps.c.begun - steps.c.failed - done - under_way), 0),
            func.coalesce(func.sum(steps.c.input_tokens), 0),
            func.coalesce(func.sum(steps.c.output_tokens), 0),
        )
        .join(runs, runs.c.id == steps.c.run)
        .where(steps.c.run == run, steps.c.paid == true())
    ).one()
    return Usage(*(int(value) for value in row))
