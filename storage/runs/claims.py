"""ready -> running: claim the next ready runs.

A claim looks at the ready runs of one account in the order in which they became due, and takes
the first that nobody else is taking just now: what it costs depends on how many it takes, not
on how many wait, or ever were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.domain.run import Run, RunState
from storage import holders as holder_rows
from storage.engine.binds import ACCOUNT_ID, HOLDER_ID, LEASE_SECONDS
from storage.engine.clock import now
from storage.engine.literals import is_in, word
from storage.engine.sets import among, within
from storage.engine.tx import Tx
from storage.runs.rows import READY, RUN
from storage.schema.tables import accounts, runs


@dataclass(frozen=True, slots=True)
class Claimant:
    """The one who claims: the holder, its lease, the time that its agent has (seconds)."""

    holder: int
    lease_seconds: float
    run_deadline: float

    @property
    def values(self) -> dict[str, object]:
        """The binds of a claim."""
        return {
            "holder_id": self.holder,
            "lease_seconds": self.lease_seconds,
            "run_deadline": self.run_deadline,
        }


CLAIMED: dict[str, Any] = {
    "state": word(RunState.RUNNING),
    "holder": HOLDER_ID,
    "fence": runs.c.fence + 1,
    "attempts": runs.c.attempts + 1,
    "claimed_at": now,
    "deadline_at": sa.case(
        (runs.c.deadline_at.is_(None), now + sa.bindparam("run_deadline")),
        (runs.c.idle_since < now, runs.c.deadline_at + (now - runs.c.idle_since)),
        else_=runs.c.deadline_at,
    ),
}
"""ready | waiting -> running, by who may be believed alive."""

_earliest = (
    sa.select(sa.func.min(runs.c.not_before))
    .where(runs.c.account == accounts.c.id, READY, runs.c.set_aside.is_(None))
    .correlate(accounts)
    .scalar_subquery()
)
_has_suspect = sa.exists(
    sa.select(1).where(runs.c.account == accounts.c.id, READY, runs.c.quarantined == sa.true())
).correlate(accounts)
_heads = (
    sa.select(accounts.c.id, _earliest.label("due"), _has_suspect.label("has_suspect"))
    .where(
        among(accounts.c.id, "account_ids"),
        accounts.c.down_since.is_(None),
    )
    .subquery()
)
_DUE_ACCOUNTS = (
    sa.select(_heads.c.id, _heads.c.has_suspect).where(_heads.c.due <= now).order_by(_heads.c.due)
)


def _claim_of(quarantined: sa.ColumnElement[bool], *order: sa.ColumnElement[Any]) -> sa.Update:
    # A CTE that locks is run once; an IN over the bare select may be run again and lock more.
    # What it locked is ready, and stays so until it is claimed here.
    chosen = (
        sa.select(runs.c.id)
        .where(
            runs.c.account == ACCOUNT_ID,
            READY,
            runs.c.not_before <= now,
            runs.c.set_aside.is_(None),
            runs.c.quarantined == quarantined,
        )
        .order_by(*order)
        .limit(sa.bindparam("room"))
        .with_for_update(skip_locked=True, key_share=True)
        .cte("chosen")
    )
    return (
        sa.update(runs)
        .where(
            within(runs.c.id, sa.select(chosen.c.id)), holder_rows.alive(HOLDER_ID, LEASE_SECONDS)
        )
        .values(**CLAIMED)
        .returning(*RUN.columns)
    )


_mine = runs.alias("mine")
_QUARANTINE_TAKEN = sa.exists(
    sa.select(1).where(
        is_in(_mine.c.state, RunState.RUNNING),
        _mine.c.holder == HOLDER_ID,
        _mine.c.quarantined == sa.true(),
    )
)
_CLAIM = _claim_of(sa.false(), runs.c.not_before, runs.c.id)
_CLAIM_SUSPECT = _claim_of(sa.true(), runs.c.failures, runs.c.order_at, runs.c.id).where(
    ~_QUARANTINE_TAKEN
)


def claim(tx: Tx, by: Claimant, rooms: Mapping[int, int], room: int) -> Sequence[Run]:
    """ready -> running, for at most `room` due runs of those of the accounts that can send,
    first due first, and of each account no more than its own of the `rooms`. At most one of them
    is a suspect, and none while the holder has one: suspects are claimed one at a time.
    """
    due = tx.execute(_DUE_ACCOUNTS, {"account_ids": list(rooms)}).all()
    claimed: list[Run] = []

    def take(move: sa.Update, account: int, at_most: int) -> None:
        values = by.values | {"account_id": account, "room": at_most}
        claimed.extend(RUN.all(tx.execute(move, values)))

    for account in due:
        if account.has_suspect and not claimed and room > 0:
            take(_CLAIM_SUSPECT, account.id, 1)
    for account in due:
        own = rooms[account.id] - sum(run.account == account.id for run in claimed)
        if (at_most := min(own, room - len(claimed))) > 0:
            take(_CLAIM, account.id, at_most)
    return claimed


_every = sa.select(_earliest.label("due")).select_from(accounts).subquery()
_OLDEST_DUE = sa.select(now - sa.func.min(_every.c.due)).where(_every.c.due <= now)


def oldest_due(tx: Tx) -> float | None:
    """Seconds for which the oldest due ready run has waited; None when there is none."""
    age = tx.scalar(_OLDEST_DUE)
    return None if age is None else float(age)
