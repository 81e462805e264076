"""A few numbers that say how the whole service is. Each is bounded: it reads an index of live
rows and counts no further than it must."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.domain.ending import Cause, Close, Ending
from bot.domain.run import RunState
from storage.runs.rows import KEPT
from storage.schema.tables import Watched, accounts, inbound, outbox, runs
from storage.statements.binds import SECONDS
from storage.statements.clock import now
from storage.statements.literals import is_in
from storage.statements.sets import within
from storage.statements.tx import Tx
from storage.views import handoffs
from storage.views.health.diagnostics import UNCERTAIN

COUNTED = 10_000
"""Rows are counted up to this many."""
_COUNTED = sa.literal_column(str(COUNTED), sa.Integer)


@dataclass(frozen=True, slots=True)
class Gauges:
    """Counts go up to COUNTED; ages in seconds, 0 when there is nothing. `kept` are answered and
    wait for their account to be up again, `wanting` are the chats that want a person."""

    ready: int
    running: int
    waiting: int
    kept: int
    uncertain: int
    standalone: int
    down: int
    wanting: int
    oldest_ready: float
    oldest_waiting: float


_READY = sa.and_(is_in(runs.c.state, RunState.READY), runs.c.not_before <= now)
_WAITING = is_in(runs.c.state, RunState.WAITING)
_DUE = sa.case((runs.c.not_before > runs.c.idle_since, runs.c.not_before), else_=runs.c.idle_since)


def _up_to(*conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    some = sa.select(sa.literal_column("1")).where(*conditions).limit(_COUNTED).subquery()
    return sa.select(sa.func.count()).select_from(some).scalar_subquery()


def _lined_up(
    moment: sa.ColumnElement[float],
    condition: sa.ColumnElement[bool],
    in_order: Sequence[sa.Column[Any]],
) -> tuple[sa.ColumnElement[int], sa.ColumnElement[float], sa.Subquery]:
    """The number of rows, the oldest one's age, and the rows that tell both, read once. Read `in
    order` of their index: in none, the planner may hope to meet them early in the table, and read
    a long past in front of them."""
    some = (
        sa.select(moment.label("at"))
        .where(condition)
        .order_by(*in_order)
        .limit(_COUNTED)
        .subquery()
    )
    told = sa.select(sa.func.count().label("count"), sa.func.min(some.c.at).label("at")).subquery()
    age = now - told.c.at
    return told.c.count, sa.case((age > 0.0, age), else_=sa.literal(0.0, sa.Double)), told


_ready, _oldest_ready, _ready_rows = _lined_up(
    sa.case((runs.c.set_aside.is_(None), _DUE)),
    _READY,
    (runs.c.account, runs.c.not_before, runs.c.id),
)
_waiting, _oldest_waiting, _waiting_rows = _lined_up(
    runs.c.created_at, _WAITING, (runs.c.chat, runs.c.order_at, runs.c.id)
)
_GAUGES = sa.select(
    _ready,
    _up_to(is_in(runs.c.state, RunState.RUNNING)),
    _waiting,
    _up_to(
        # By account: so the index has them apart from all that is due.
        within(runs.c.account, sa.select(accounts.c.id)),
        is_in(runs.c.state, RunState.READY),
        KEPT,
    ),
    _up_to(*UNCERTAIN),
    _up_to(is_in(outbox.c.watched, Watched.DUE)),
    _up_to(accounts.c.down_since.is_not(None)),
    handoffs.COUNT,
    _oldest_ready,
    _oldest_waiting,
).select_from(_ready_rows.join(_waiting_rows, sa.true()))


def read_gauges(tx: Tx) -> Gauges:
    """The state of the service now."""
    return Gauges(*tx.execute(_GAUGES).one())


@dataclass(frozen=True, slots=True)
class Rates:
    """The events of the last `seconds`: endings by name, and messages recorded."""

    seconds: float
    recorded: int
    endings: tuple[tuple[str, int], ...]
    errors: tuple[tuple[int, str, float], ...]
    """(run, what it says, seconds ago) of the newest runs that ended badly."""


_SINCE = now - SECONDS
_ENDINGS = (
    sa.select(runs.c.ending, sa.func.count())
    .where(runs.c.ended_at > _SINCE)
    .group_by(runs.c.ending)
)
_ENDED_BADLY = (
    sa.select(runs.c.id, now - runs.c.ended_at, runs.c.ending, runs.c.cause, runs.c.detail)
    .where(runs.c.ended_at > now - 3600, is_in(runs.c.ending, *(e for e in Ending if e.needs_eyes)))
    .order_by(runs.c.ended_at.desc())
    .limit(8)
)
# Back from the newest one: of what is older, one row is read.
_last_before = (
    sa.select(inbound.c.id)
    .where(inbound.c.id > sa.literal_column("0"), inbound.c.received_at <= _SINCE)
    .order_by(inbound.c.id.desc())
    .limit(sa.literal_column("1"))
    .scalar_subquery()
)
_RECORDED = sa.select(sa.func.count()).where(
    inbound.c.id > sa.func.coalesce(_last_before, sa.literal_column("0"))
)


def _badly(ending: str, cause: str, detail: str) -> str:
    """An ending and the reason for it, which is the cause's sentence where the words are gone."""
    return f"{ending}: {Close(Ending(ending), Cause(cause), detail).words}"


def read_rates(tx: Tx, seconds: float) -> Rates:
    """The amounts of what happened lately."""
    lately = {"seconds": seconds}
    return Rates(
        seconds=seconds,
        recorded=int(tx.scalars(_RECORDED, lately).one()),
        endings=tuple((str(row[0]), int(row[1])) for row in tx.execute(_ENDINGS, lately)),
        errors=tuple((run, _badly(*end), ago) for run, ago, *end in tx.execute(_ENDED_BADLY)),
    )
