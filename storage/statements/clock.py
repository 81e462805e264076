"""The two clocks of the database, as SQL.

`now` is the wall clock of the database: due times, deadlines, time stamps. `lease_now` is
the clock by which a holder is alive or dead. PostgreSQL has one clock for all processes and
both are it. SQLite is a library inside each process of one machine: there `lease_now` is the
time since the machine's boot (suspended time included), and `lease_clock` is the boot's id,
so that setting the wall clock changes nothing and a rebooted machine's holders are dead.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Double, Text, and_, case, func, or_, select

from storage.statements.binds import STEP
from storage.statements.tx import Tx

NOW_FUNCTION = "answerback_now"
LEASE_NOW_FUNCTION = "answerback_lease_now"
LEASE_CLOCK_FUNCTION = "answerback_lease_clock"

now = getattr(func, NOW_FUNCTION)(type_=Double)
"""Epoch seconds, the database's clock."""

lease_now = getattr(func, LEASE_NOW_FUNCTION)(type_=Double)
"""Seconds of the lease clock."""

lease_clock = getattr(func, LEASE_CLOCK_FUNCTION)(type_=Text)
"""The lease clock that `lease_now` is on; holders of another clock are dead."""


def waited(due: ColumnElement[float]) -> ColumnElement[bool]:
    """Tell whether this due time was written before the clock was set by STEP. A due time that was
    written since then is not earlier than the moment of setting, which was just now."""
    forward = and_(due > now - STEP, due < now - STEP / 2)
    return or_(and_(STEP < 0, due > now), and_(STEP > 0, forward))


def moved(due: ColumnElement[float]) -> ColumnElement[float]:
    """A due time, moved with the clock that was set by STEP; at the earliest now."""
    there = due + STEP
    return case((there < now, now), else_=there)


def stamped_before(at: ColumnElement[float]) -> ColumnElement[bool]:
    """Tell whether this time was taken before the clock was set by STEP. After a step back this
    only finds times that would now be in the future; for older ones it makes no difference."""
    return or_(and_(STEP < 0, at > now), and_(STEP > 0, at < now - STEP / 2))


def as_old(at: ColumnElement[float]) -> ColumnElement[float]:
    """A past time, moved with the clock that was set by STEP, so that it is as long ago as before;
    at the latest now."""
    there = at + STEP
    return case((there > now, now), else_=there)


_READ = select(now)
_READ_LEASE = select(lease_now)


def read(tx: Tx) -> float:
    """The database's clock, read once."""
    return float(tx.scalars(_READ).one())


def read_lease(tx: Tx) -> float:
    """The lease clock, read once."""
    return float(tx.scalars(_READ_LEASE).one())
