"""The last hours, in equal spans: how many runs ended, how many of them badly, and how long the
person had waited. Each span is a short walk along an index, so a busy one costs as a quiet one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.domain.ending import Ending
from storage.schema.tables import runs
from storage.statements import clock
from storage.statements.literals import is_in
from storage.statements.tx import Tx

SAMPLE = 200
"""Runs of a span that are looked at: of more than these its figures are estimated."""
_FROM, _UNTIL = (sa.bindparam(name, type_=sa.Double) for name in ("begins", "ends"))
_SPAN = (
    sa.select(
        runs.c.ended_at,
        sa.case((is_in(runs.c.ending, *(e for e in Ending if e.needs_eyes)), 1), else_=0),
        runs.c.ended_at - runs.c.created_at,
    )
    .where(runs.c.ended_at >= _FROM, runs.c.ended_at < _UNTIL)
    .order_by(runs.c.ended_at)
    .limit(sa.literal_column(str(SAMPLE)))
)


@dataclass(frozen=True, slots=True)
class Span:
    """Some minutes: `begins` in epoch seconds, `ended` and `badly` count runs, and `waited` is the
    median of seconds from a message to the end of its run, None where none ended."""

    begins: float
    ended: float
    badly: float
    waited: float | None
    estimated: bool


def last_hours(tx: Tx, seconds: float, spans: int) -> Sequence[Span]:
    """The last spans of so many seconds, the one that goes on now at the end."""
    now = clock.read(tx)
    first = (now // seconds - spans + 1) * seconds
    return [_span(tx, first + number * seconds, seconds, now) for number in range(spans)]


def _span(tx: Tx, begins: float, seconds: float, now: float) -> Span:
    rows = tx.execute(_SPAN, {"begins": begins, "ends": begins + seconds}).all()
    if not rows:
        return Span(begins, 0.0, 0.0, None, estimated=False)
    waits = sorted(row[2] for row in rows)
    median = max(0.0, waits[len(waits) // 2])
    # As many in the whole of it as in the time that the sample took.
    took = max(rows[-1][0] - begins, 0.001)
    whole = min(seconds, max(now - begins, took))
    times = whole / took if len(rows) == SAMPLE else 1.0
    badly = sum(row[1] for row in rows)
    return Span(begins, len(rows) * times, badly * times, median, estimated=times > 1.0)
