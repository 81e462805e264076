"""Holders: one row for each life of a process that works on runs.

A holder is alive while its row was renewed within the lease, on the lease clock. It dies
once: whoever finds it overdue marks it gone, and a holder that is gone can't renew any more.
Marking and renewing update the same row, so exactly one of them wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from bot.domain.delivery import PartState
from bot.domain.run import RunState
from storage.engine.clock import lease_clock, lease_now, now
from storage.engine.literals import is_in
from storage.engine.tx import Tx
from storage.schema.tables import holders, outbox, runs


@dataclass(frozen=True, slots=True)
class Identity:
    """Which process this is. `boot` is unique for each life of a process."""

    name: str
    boot: str
    host: str
    pid: int
    role: str


@dataclass(frozen=True, slots=True)
class HolderRow:
    """A holder as operators see it. `lease_age` in seconds since its last renewal."""

    id: int
    name: str
    host: str
    pid: int
    role: str
    lease_age: float
    draining: bool
    gone: bool


def alive(holder: object, lease_seconds: float | ColumnElement[float]) -> ColumnElement[bool]:
    """The condition that `holder` (a value or a column) may be believed alive."""
    # Under a name of its own: `holder` may be a column of `holders` itself.
    living = holders.alias("living")
    return exists(
        select(1)
        .where(
            living.c.id == holder, living.c.gone_at.is_(None), ~_overdue(lease_seconds, living.c)
        )
        .correlate_except(living)
    )


def _overdue(
    lease_seconds: float | ColumnElement[float],
    of: ReadOnlyColumnCollection[str, Column[Any]] = holders.c,
) -> ColumnElement[bool]:
    return or_(
        of.clock != lease_clock,
        of.renewed_at < lease_now - lease_seconds,
        # Renewed in the future: the clock was set back since, and who lives has renewed again.
        of.renewed_at > lease_now + lease_seconds,
    )


def register(tx: Tx, identity: Identity) -> int:
    """Begin a life; returns the holder's id."""
    row = insert(holders).values(
        name=identity.name,
        boot=identity.boot,
        clock=lease_clock,
        host=identity.host,
        pid=identity.pid,
        role=identity.role,
        started_at=now,
        renewed_at=lease_now,
        seen_at=now,
    )
    return int(tx.scalars(row.returning(holders.c.id)).one())


def renew(tx: Tx, holder: int) -> bool:
    """Extend the lease. False: somebody marked this holder dead. One that is merely overdue has
    lost nothing yet; its own monotonic clock tells it whether it may still believe in itself."""
    move = (
        update(holders)
        .where(holders.c.id == holder, holders.c.gone_at.is_(None))
        .values(renewed_at=lease_now, seen_at=now)
    )
    return tx.execute(move).rowcount == 1


def drain(tx: Tx, holder: int) -> None:
    """Say that this holder takes no more work; its death from now on counts nothing."""
    tx.execute(update(holders).where(holders.c.id == holder).values(draining=True))


def retire(tx: Tx, holder: int) -> None:
    """End a life on purpose."""
    tx.execute(
        update(holders)
        .where(holders.c.id == holder, holders.c.gone_at.is_(None))
        .values(gone_at=now)
    )


def bury_overdue(tx: Tx, lease_seconds: float) -> Sequence[int]:
    """alive -> gone, for every holder whose lease ran out."""
    move = (
        update(holders)
        .where(holders.c.gone_at.is_(None), _overdue(lease_seconds))
        .values(gone_at=now)
        .returning(holders.c.id)
    )
    return tx.scalars(move).all()


def bury_earlier_boots(tx: Tx, name: str, but: int) -> Sequence[int]:
    """alive -> gone, for earlier lives under `name`. Only for the owner of the name's lock."""
    move = (
        update(holders)
        .where(holders.c.name == name, holders.c.id != but, holders.c.gone_at.is_(None))
        .values(gone_at=now)
        .returning(holders.c.id)
    )
    return tx.scalars(move).all()


def forget_gone(tx: Tx, older_than: float) -> int:
    """Delete holders that are gone for `older_than` seconds and hold nothing any more."""
    holds_run = exists(
        select(1).where(runs.c.holder == holders.c.id, is_in(runs.c.state, RunState.RUNNING))
    )
    holds_part = exists(
        select(1).where(outbox.c.holder == holders.c.id, is_in(outbox.c.state, PartState.SENDING))
    )
    move = delete(holders).where(
        and_(holders.c.gone_at < now - older_than, ~holds_run, ~holds_part)
    )
    return tx.execute(move).rowcount


def listed(tx: Tx, lease_seconds: float) -> Sequence[HolderRow]:
    """Every holder that is not forgotten, the live ones first."""
    gone = or_(holders.c.gone_at.is_not(None), _overdue(lease_seconds))
    question = select(
        holders.c.id,
        holders.c.name,
        holders.c.host,
        holders.c.pid,
        holders.c.role,
        (lease_now - holders.c.renewed_at).label("lease_age"),
        holders.c.draining,
        gone.label("gone"),
    ).order_by(gone, holders.c.id)
    return [HolderRow(*row) for row in tx.execute(question)]


def live_workers(tx: Tx, lease_seconds: float) -> int:
    """How many holders that send are alive; at least 1, which is the one who asks."""
    question = select(func.count()).where(
        holders.c.gone_at.is_(None), ~_overdue(lease_seconds), holders.c.role != "web"
    )
    return max(1, int(tx.scalars(question).one()))
