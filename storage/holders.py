"""Holders: one row for each session of a process that works on runs.

A holder is alive while its row was renewed within the lease, on the lease clock. It dies
once: whoever finds it overdue marks it dead, and a holder that was marked can't renew any more.
Marking and renewing update the same row, so exactly one of them wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from bot.domain.run import RunState
from storage.engine import name_lock
from storage.schema.tables import Watched, holders, outbox, runs
from storage.statements.binds import HOLDER_ID, LEASE_SECONDS, SECONDS
from storage.statements.clock import lease_clock, lease_now, now
from storage.statements.entity import Entity
from storage.statements.literals import is_in
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of this process. `boot` is unique for each of its sessions."""

    name: str
    boot: str
    host: str
    pid: int
    role: str
    version: str


@dataclass(frozen=True, slots=True)
class HolderRow:
    """A holder as operators see it. `lease_age` in seconds since its last renewal; `version` is
    empty for 0.1.0, which did not tell it."""

    id: int
    name: str
    host: str
    pid: int
    role: str
    lease_age: float
    draining: bool
    gone: bool
    version: str


def _overdue(
    of: sa.FromClause = holders,
    lease_seconds: float | sa.ColumnElement[float] = LEASE_SECONDS,
    part: float = 1.0,
) -> sa.ColumnElement[bool]:
    # By its own lease where it told that: another one may work by other settings, for a while.
    lease = sa.func.coalesce(of.c.lease, lease_seconds) * part
    return sa.or_(
        of.c.clock != lease_clock,
        of.c.renewed_at < lease_now - lease,
        # Renewed in the future: the clock was set back since, and who lives has renewed again.
        of.c.renewed_at > lease_now + lease,
    )


since_renewal = sa.case(
    (holders.c.clock == lease_clock, lease_now - holders.c.renewed_at),
    else_=now - holders.c.seen_at,
)
"""Seconds since the last renewal: by the wall clock for a holder of another lease clock, from
before the machine was booted anew or the database was copied."""


def alive(holder: object, lease_seconds: float | sa.ColumnElement[float]) -> sa.ColumnElement[bool]:
    """The condition that `holder` (a value or a column) may be believed alive."""
    # Under a name of its own: `holder` may be a column of `holders` itself.
    living = holders.alias("living")
    return sa.exists(
        sa.select(1)
        .where(living.c.id == holder, living.c.gone_at.is_(None), ~_overdue(living, lease_seconds))
        .correlate_except(living)
    )


_NOT_GONE = holders.c.gone_at.is_(None)
_BEGUN = {"clock": lease_clock, "started_at": now, "renewed_at": lease_now, "seen_at": now}
# Where its row is there already, the answer to its commit was lost. The name may be another since.
_INSERT = insert(holders).values(_BEGUN)
_REGISTER = _INSERT.on_conflict_do_update(
    index_elements=[holders.c.boot], set_=_BEGUN | {"name": _INSERT.excluded.name}
).returning(holders.c.id)
_RENEW = (
    sa.update(holders)
    .where(holders.c.id == HOLDER_ID, _NOT_GONE)
    .values(renewed_at=lease_now, seen_at=now)
)
_DRAIN = sa.update(holders).where(holders.c.id == HOLDER_ID).values(draining=True)
_MARK_DEAD = sa.update(holders).where(_NOT_GONE).values(gone_at=now).returning(holders.c.id)
_MARK_OVERDUE = _MARK_DEAD.where(_overdue())
_MARK_EARLIER = _MARK_DEAD.where(
    holders.c.name == sa.bindparam("called"), holders.c.id != HOLDER_ID
)
_RETIRE = _MARK_DEAD.where(holders.c.id == HOLDER_ID)


def register(tx: Tx, identity: Identity, lease_seconds: float | None = None) -> int:
    """Begin a session whose renewals are worth so many seconds; returns the holder's id."""
    values = {**asdict(identity), "lease": lease_seconds}
    return int(tx.scalars(_REGISTER, values).one())


def renew(tx: Tx, holder: int) -> bool:
    """Extend the lease. False: somebody marked this holder dead. One that is merely overdue has
    lost nothing yet; its own monotonic clock tells it whether it may still believe in itself."""
    return tx.execute(_RENEW, {"holder_id": holder}).rowcount == 1


def drain(tx: Tx, holder: int) -> None:
    """Say that this holder takes no more work; its death from now on counts nothing."""
    tx.execute(_DRAIN, {"holder_id": holder})


def retire(tx: Tx, holder: int) -> None:
    """End a session on purpose."""
    tx.execute(_RETIRE, {"holder_id": holder})


def mark_overdue_dead(tx: Tx, lease_seconds: float) -> Sequence[int]:
    """alive -> gone, for every holder whose lease ran out."""
    return tx.scalars(_MARK_OVERDUE, {"lease_seconds": lease_seconds}).all()


def mark_earlier_dead(tx: Tx, name: str, but: int) -> Sequence[int]:
    """alive -> gone, for earlier sessions under `name`. Only for the owner of the name's lock."""
    return tx.scalars(_MARK_EARLIER, {"called": name, "holder_id": but}).all()


_HOLDS_RUN = sa.exists(
    sa.select(1).where(runs.c.holder == holders.c.id, is_in(runs.c.state, RunState.RUNNING))
)
_HOLDS_PART = sa.exists(
    sa.select(1).where(outbox.c.holder == holders.c.id, is_in(outbox.c.watched, Watched.LEAVING))
)
_FORGET = sa.delete(holders).where(holders.c.gone_at < now - SECONDS, ~_HOLDS_RUN, ~_HOLDS_PART)


def forget_gone(tx: Tx, older_than: float) -> int:
    """Delete holders that are gone for `older_than` seconds and hold nothing any more."""
    return tx.execute(_FORGET, {"seconds": older_than}).rowcount


_gone = sa.or_(holders.c.gone_at.is_not(None), _overdue())
_HOLDER = Entity(
    HolderRow,
    holders,
    lease_age=since_renewal,
    gone=_gone.label("gone"),
)
_LISTED = sa.select(*_HOLDER.columns).order_by(_gone, holders.c.id)


def listed(tx: Tx, lease_seconds: float) -> Sequence[HolderRow]:
    """Every holder that is not forgotten, the live ones first."""
    return _HOLDER.all(tx.execute(_LISTED, {"lease_seconds": lease_seconds}))


_LATE = 2 / 3
"""Of a lease: a process that renews at all has done so by then."""
_is_late = sa.or_(holders.c.gone_at.is_not(None), _overdue(part=_LATE))
_NEWEST_LAST = sa.select(*_HOLDER.columns, _is_late).order_by(holders.c.id)


def silent(tx: Tx, lease_seconds: float) -> Sequence[HolderRow]:
    """Processes that are there by their names' locks and are late to renew, or marked dead."""
    rows = tx.execute(_NEWEST_LAST, {"lease_seconds": lease_seconds})
    newest = {row.name: row for row in rows}
    late = _HOLDER.all(row for row in newest.values() if row[-1])
    return [row for row in late if name_lock.is_held(tx, row.name)]


_NOT_ENDED = _LISTED.where(_NOT_GONE)


def at_work(tx: Tx, lease_seconds: float) -> Sequence[HolderRow]:
    """Every holder whose process may be there, whatever its lease says. On SQLite the lock on its
    name tells for certain; on PostgreSQL that goes with a connection, which a living process may
    have lost a moment ago."""
    rows = _HOLDER.all(tx.execute(_NOT_ENDED, {"lease_seconds": lease_seconds}))
    return [r for r in rows if name_lock.is_held(tx, r.name) or not (r.gone or tx.is_sqlite)]


def living_beside(tx: Tx, lease_seconds: float, name: str) -> Sequence[HolderRow]:
    """The living holders of other names. Who was killed is none, although its lease may last."""
    rows = listed(tx, lease_seconds)
    return [r for r in rows if not r.gone and r.name != name and name_lock.is_held(tx, r.name)]


_WORKER = "worker"
"""The role of a process to which platforms can't deliver."""


def listening() -> sa.ColumnElement[bool]:
    """The condition that some process is alive to which platforms can deliver."""
    return sa.exists(
        sa.select(1).select_from(holders).where(_NOT_GONE, ~_overdue(), holders.c.role != _WORKER)
    )


def listens_beside(tx: Tx, lease_seconds: float, name: str) -> bool:
    """Tell whether a process of another name is alive to which platforms can deliver."""
    return any(row.role != _WORKER for row in living_beside(tx, lease_seconds, name))


_LIVE_WORKERS = sa.select(sa.func.count()).where(_NOT_GONE, ~_overdue(), holders.c.role != "web")


def live_workers(tx: Tx, lease_seconds: float) -> int:
    """The number of living holders that send; at least 1, which is the one who asks."""
    return max(1, tx.scalars(_LIVE_WORKERS, {"lease_seconds": lease_seconds}).one())
