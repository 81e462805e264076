"""ready -> running: who works on what.

A claim looks at the ready runs of one account in the order in which they became due, and takes
the first that nobody else is taking just now: what it costs depends on how many it takes, not
on how many wait, or ever were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Update,
    bindparam,
    case,
    exists,
    false,
    func,
    select,
    true,
    update,
)

from bot.domain.delivery import PartState
from bot.domain.run import Run, RunState
from storage import holders as holder_moves
from storage.engine.clock import now
from storage.engine.literals import is_in, word
from storage.engine.sets import among, within
from storage.engine.tx import Tx
from storage.outbox.moves import COLUMNS as PART_COLUMNS
from storage.outbox.moves import Part, part_of
from storage.runs.moves import COLUMNS, Claimant, run_of
from storage.schema.tables import accounts, outbox, runs

_READY = is_in(runs.c.state, RunState.READY)
_earliest = (
    select(func.min(runs.c.not_before))
    .where(runs.c.account == accounts.c.id, _READY, runs.c.set_aside.is_(None))
    .correlate(accounts)
    .scalar_subquery()
)
_suspected = exists(
    select(1).where(runs.c.account == accounts.c.id, _READY, runs.c.lane == true())
).correlate(accounts)
_heads = (
    select(accounts.c.id, _earliest.label("due"), _suspected.label("suspected"))
    .where(
        among(accounts.c.id, "mine"),
        accounts.c.down_since.is_(None),
    )
    .subquery()
)
_DUE_ACCOUNTS = (
    select(_heads.c.id, _heads.c.suspected).where(_heads.c.due <= now).order_by(_heads.c.due)
)


def _claim_of(lane: ColumnElement[bool], *order: ColumnElement[Any]) -> Update:
    # A CTE that locks is run once; an IN over the bare select may be run again and lock more.
    # What it locked is ready, and stays so until it is claimed here.
    chosen = (
        select(runs.c.id)
        .where(
            runs.c.account == bindparam("of"),
            _READY,
            runs.c.not_before <= now,
            runs.c.set_aside.is_(None),
            runs.c.lane == lane,
        )
        .order_by(*order)
        .limit(bindparam("room"))
        .with_for_update(skip_locked=True, key_share=True)
        .cte("chosen")
    )
    return (
        update(runs)
        .where(
            within(runs.c.id, select(chosen.c.id)),
            holder_moves.alive(
                bindparam("me", type_=BigInteger), bindparam("lease_seconds", type_=Double)
            ),
        )
        .values(
            state=word(RunState.RUNNING),
            holder=bindparam("me", type_=BigInteger),
            fence=runs.c.fence + 1,
            attempts=runs.c.attempts + 1,
            claimed_at=now,
            deadline_at=case(
                (runs.c.deadline_at.is_(None), now + bindparam("run_deadline")),
                (runs.c.idle_since < now, runs.c.deadline_at + (now - runs.c.idle_since)),
                else_=runs.c.deadline_at,
            ),
        )
        .returning(*COLUMNS)
    )


_mine = runs.alias("mine")
_LANE_TAKEN = exists(
    select(1).where(
        is_in(_mine.c.state, RunState.RUNNING),
        _mine.c.holder == bindparam("me", type_=BigInteger),
        _mine.c.lane == true(),
    )
)
_CLAIM = _claim_of(false(), runs.c.not_before, runs.c.id)
_CLAIM_SUSPECT = _claim_of(true(), runs.c.failures, runs.c.order_at, runs.c.id).where(~_LANE_TAKEN)


def claim(tx: Tx, by: Claimant, mine: Sequence[int], room: int) -> Sequence[Run]:
    """ready -> running, for at most `room` due runs of those of the accounts `mine` that can
    send, first due first. At most one of them is a suspect, and none while the holder's one
    lane for suspects is taken.
    """
    values = {
        "me": by.holder,
        "lease_seconds": by.lease_seconds,
        "run_deadline": by.run_deadline,
    }
    due = tx.execute(_DUE_ACCOUNTS, {"mine": list(mine)}).all()
    claimed: list[Run] = []
    for account in due:
        if account.suspected and not claimed and room > 0:
            claimed += _take(tx, _CLAIM_SUSPECT, values | {"of": account.id, "room": 1})
    for account in due:
        if len(claimed) < room:
            claimed += _take(tx, _CLAIM, values | {"of": account.id, "room": room - len(claimed)})
    return claimed


def _take(tx: Tx, move: Update, values: dict[str, object]) -> Sequence[Run]:
    return [run_of(row) for row in tx.execute(move, values)]


_HELD_BY = select(*COLUMNS).where(
    runs.c.holder == bindparam("me", type_=BigInteger), is_in(runs.c.state, RunState.RUNNING)
)


def held_by(tx: Tx, holder: int) -> Sequence[Run]:
    """The runs that are running under this holder."""
    return [run_of(row) for row in tx.execute(_HELD_BY, {"me": holder})]


_SENDING_BY = select(*PART_COLUMNS).where(
    outbox.c.holder == bindparam("me"), is_in(outbox.c.state, PartState.SENDING)
)


def sending_by(tx: Tx, holder: int) -> Sequence[Part]:
    """The parts that this holder has begun to send and not heard of."""
    return [part_of(row) for row in tx.execute(_SENDING_BY, {"me": holder})]


_every = select(_earliest.label("due")).select_from(accounts).subquery()
_OLDEST_DUE = select(now - func.min(_every.c.due)).where(_every.c.due <= now)


def oldest_due(tx: Tx) -> float | None:
    """Seconds for which the oldest due ready run has waited; None when there is none."""
    age = tx.scalar(_OLDEST_DUE)
    return None if age is None else float(age)
