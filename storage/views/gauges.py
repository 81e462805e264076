"""A few numbers that say how the whole service is. Each is bounded: it reads an index of live
rows and counts no further than it must."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, case, func, select, true

from bot.domain.delivery import PartState
from bot.domain.run import RunState
from storage.engine.clock import now
from storage.engine.literals import is_in, is_not
from storage.engine.tx import Tx
from storage.schema.tables import outbox, payloads, runs

COUNTED = 10_000
"""Rows are counted up to this many."""


@dataclass(frozen=True, slots=True)
class Gauges:
    """Counts go up to COUNTED; ages in seconds, 0 when there is nothing."""

    ready: int
    running: int
    waiting: int
    uncertain: int
    standalone: int
    oldest_ready: float
    oldest_waiting: float


def read_gauges(tx: Tx) -> Gauges:
    """How the service is now."""
    due = case((runs.c.not_before > runs.c.idle_since, runs.c.not_before), else_=runs.c.idle_since)
    ready = is_in(runs.c.state, RunState.READY)
    waits = and_(is_not(runs.c.state, RunState.ENDED), is_in(runs.c.state, RunState.WAITING))
    doubtful = is_in(outbox.c.state, PartState.UNCERTAIN, PartState.REFUSED)
    return Gauges(
        ready=_up_to(tx, ready, runs.c.not_before <= now),
        running=_up_to(tx, is_in(runs.c.state, RunState.RUNNING)),
        waiting=_up_to(tx, waits),
        uncertain=_up_to(tx, doubtful, outbox.c.state == "uncertain"),
        standalone=_up_to(
            tx, outbox.c.standalone == true(), is_in(outbox.c.state, PartState.PENDING)
        ),
        oldest_ready=_since(tx, due, ready, runs.c.not_before <= now, runs.c.set_aside.is_(None)),
        oldest_waiting=_since(tx, runs.c.created_at, waits),
    )


def _up_to(tx: Tx, *conditions: ColumnElement[bool]) -> int:
    some = select(1).where(*conditions).limit(COUNTED).subquery()
    return int(tx.scalars(select(func.count()).select_from(some)).one())


def _since(tx: Tx, moment: ColumnElement[float], *conditions: ColumnElement[bool]) -> float:
    some = select(moment.label("at")).where(*conditions).limit(COUNTED).subquery()
    first = tx.scalar(select(func.min(some.c.at)))
    return 0.0 if first is None else max(0.0, float(tx.scalars(select(now)).one()) - float(first))


@dataclass(frozen=True, slots=True)
class Rates:
    """What happened within the last `seconds`: endings by name, and
    payloads recorded."""

    seconds: float
    recorded: int
    endings: tuple[tuple[str, int], ...]
    errors: tuple[tuple[int, str, float], ...]
    """(run, what it says, seconds ago) of the newest runs that ended badly."""


_BAD = ("failed", "apologised", "uncertain", "undeliverable", "expired")


def read_rates(tx: Tx, seconds: float) -> Rates:
    """How much happened lately."""
    ended = (
        select(runs.c.ending, func.count())
        .where(runs.c.ended_at > now - seconds)
        .group_by(runs.c.ending)
    )
    badly = (
        select(runs.c.id, runs.c.ending, runs.c.detail, now - runs.c.ended_at)
        .where(runs.c.ended_at > now - 3600, runs.c.ending.in_(_BAD))
        .order_by(runs.c.ended_at.desc())
        .limit(8)
    )
    recorded = select(func.count()).where(payloads.c.received_at > now - seconds)
    return Rates(
        seconds=seconds,
        recorded=int(tx.scalars(recorded).one()),
        endings=tuple((str(row[0]), int(row[1])) for row in tx.execute(ended)),
        errors=tuple((r[0], f"{r[1]}: {r[2]}", r[3]) for r in tx.execute(badly)),
    )
