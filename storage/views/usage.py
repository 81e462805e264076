"""Model usage of a run, from its steps."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from bot.domain.run import RunState
from storage.schema.tables import runs, steps
from storage.statements.binds import RUN_ID
from storage.statements.literals import is_in
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class Usage:
    """Model calls of a run. `failed` were refused by the provider; `cut_off` ended with their
    process, may have cost tokens that nobody counted, and were made again by a recovery."""

    calls: int = 0
    failed: int = 0
    cut_off: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


_under_way = sa.and_(
    steps.c.state == "started",
    is_in(runs.c.state, RunState.RUNNING),
    runs.c.fence == steps.c.fence,
    steps.c.begun > steps.c.failed,
)
_complete = sa.case((sa.or_(steps.c.state == "done", _under_way), 1), else_=0)
_OF_RUN = (
    sa.select(
        *(
            sa.func.coalesce(sa.func.sum(summed), 0)
            for summed in (
                steps.c.begun,
                steps.c.failed,
                steps.c.begun - steps.c.failed - _complete,
                steps.c.input_tokens,
                steps.c.output_tokens,
            )
        )
    )
    .join(runs, runs.c.id == steps.c.run)
    .where(steps.c.run == RUN_ID, steps.c.paid == sa.true())
)


def of_run(tx: Tx, run: int) -> Usage:
    """The amount that this run spent so far."""
    return Usage(*map(int, tx.execute(_OF_RUN, {"run_id": run}).one()))
