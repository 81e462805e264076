"""The last hours, in equal spans: the runs that ended, those of them that ended badly, and the time
for which people had waited. Each is a short walk along an index: a busy one costs as a quiet one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.domain.ending import Ending
from storage.schema.tables import runs
from storage.statements import clock
from storage.statements.literals import is_in
from storage.statements.tx import Tx

SPANS = 24
SAMPLE = 100
"""Runs of a span that are looked at: of more than these its figures are estimated."""
_FIRST, _SECONDS = (sa.bindparam(name, type_=sa.Double) for name in ("first", "seconds"))
_BADLY = sa.case((is_in(runs.c.ending, *(e for e in Ending if e.needs_eyes)), 1), else_=0)


def _of_span(number: int) -> sa.Select[tuple[int, float, int, float]]:
    begins = _FIRST + _SECONDS * number
    some = (
        sa.select(
            runs.c.ended_at.label("at"),
            _BADLY.label("badly"),
            (runs.c.ended_at - runs.c.created_at).label("waited"),
        )
        .where(runs.c.ended_at >= begins, runs.c.ended_at < begins + _SECONDS)
        .order_by(runs.c.ended_at)
        .limit(sa.literal_column(str(SAMPLE)))
        .subquery()
    )
    place = sa.literal_column(str(number), sa.Integer)
    return sa.select(place, some.c.at, some.c.badly, some.c.waited)


_SOME = sa.union_all(*map(_of_span, range(SPANS)))


@dataclass(frozen=True, slots=True)
class Span:
    """Some minutes: `begins` in epoch seconds, `ended` and `badly` count runs, and `waited` is the
    median of seconds from a message to the end of its run, None where none ended."""

    begins: float
    ended: float
    badly: float
    waited: float | None
    estimated: bool


def last_hours(tx: Tx, seconds: float) -> Sequence[Span]:
    """The last spans of so many seconds, the one that goes on now at the end."""
    now = clock.read(tx)
    first = (now // seconds - SPANS + 1) * seconds
    found: list[list[tuple[float, int, float]]] = [[] for _ in range(SPANS)]
    for place, at, badly, waited in tx.execute(_SOME, {"first": first, "seconds": seconds}):
        found[place].append((at, badly, waited))
    return [
        _span(first + place * seconds, seconds, now, sorted(rows))
        for place, rows in enumerate(found)
    ]


def _span(
    begins: float, seconds: float, now: float, rows: Sequence[tuple[float, int, float]]
) -> Span:
    if not rows:
        return Span(begins, 0.0, 0.0, None, estimated=False)
    waits = sorted(waited for _, _, waited in rows)
    # As many in the whole of it as in the time that the sample took.
    took = max(rows[-1][0] - begins, 0.001)
    whole = min(seconds, max(now - begins, took))
    times = whole / took if len(rows) == SAMPLE else 1.0
    return Span(
        begins,
        ended=len(rows) * times,
        badly=sum(badly for _, badly, _ in rows) * times,
        waited=max(0.0, waits[len(waits) // 2]),
        estimated=times > 1.0,
    )
