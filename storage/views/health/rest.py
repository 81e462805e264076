"""The work that is not over: for whoever waits until a whole service is at rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.domain.delivery import PartState
from bot.domain.run import RunState
from storage.schema.tables import outbox, runs
from storage.statements.literals import is_in, is_not
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run that has not ended. `not_before` in epoch seconds."""

    id: int
    chat: int
    state: RunState
    attempts: int
    failures: int
    not_before: float
    set_aside: str | None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Runs that are not over, and by when they are due the parts that belong to none."""

    runs: Sequence[LiveRun]
    notices: Sequence[float]


_RUNS = (
    sa.select(
        runs.c.id,
        runs.c.chat,
        runs.c.state,
        runs.c.attempts,
        runs.c.failures,
        runs.c.not_before,
        runs.c.set_aside,
    )
    .where(is_not(runs.c.state, RunState.ENDED))
    .order_by(runs.c.id)
)
_NOTICES = sa.select(outbox.c.not_before).where(
    outbox.c.standalone, is_in(outbox.c.state, PartState.PENDING, PartState.SENDING)
)


def unfinished(tx: Tx) -> Unfinished:
    """All of it, by a look at every row: for small databases."""
    found = [LiveRun(r[0], r[1], RunState(r[2]), *r[3:]) for r in tx.execute(_RUNS)]
    return Unfinished(found, tx.scalars(_NOTICES).all())
