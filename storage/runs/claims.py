"""ready -> running: claim the next ready runs.

A claim reads the ready runs of an account in the order in which they became due, and takes the
first ones that nobody else is taking just now. Its cost depends on how many it takes, and not on
how many wait or have ended.

Runs are also claimed while their account is down: their agents can work all the same. Only answered
runs wait for the account (`keep`): they stand in the index behind everything that is due, and are
claimed once the account is up, without any further move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.domain.run import Run, RunState
from storage import holders as holder_rows
from storage.runs.rows import KEPT, READY, RUN
from storage.schema.tables import accounts, runs
from storage.statements.binds import ACCOUNT_ID, HOLDER_ID, LEASE_SECONDS
from storage.statements.clock import now
from storage.statements.literals import is_in, word
from storage.statements.sets import among, within
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class Claimant:
    """The holder that claims, the length of its lease and the time that an agent has for a run
    (seconds)."""

    holder: int
    lease_seconds: float
    run_deadline: float

    @property
    def values(self) -> dict[str, object]:
        """The values for the binds of a claim."""
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
"""ready | waiting -> running. Goes with the guard that the holder is alive."""

_earliest = (
    sa.select(sa.func.min(runs.c.not_before))
    .where(runs.c.account == accounts.c.id, READY, runs.c.set_aside.is_(None))
    .correlate(accounts)
    .scalar_subquery()
)
_has_suspect = sa.exists(
    sa.select(1).where(runs.c.account == accounts.c.id, READY, runs.c.quarantined == sa.true())
).correlate(accounts)
_has_kept = sa.exists(sa.select(1).where(runs.c.account == accounts.c.id, READY, KEPT)).correlate(
    accounts
)
_heads = (
    sa.select(
        accounts.c.id,
        _earliest.label("due"),
        _has_suspect.label("has_suspect"),
        sa.and_(accounts.c.down_since.is_(None), _has_kept).label("has_kept"),
    )
    .where(among(accounts.c.id, "account_ids"))
    .subquery()
)
_DUE_ACCOUNTS = (
    sa.select(_heads.c.id, _heads.c.has_suspect, _heads.c.has_kept)
    .where(sa.or_(_heads.c.due <= now, _heads.c.has_kept))
    .order_by(sa.case((_heads.c.has_kept, 0.0), else_=_heads.c.due))
)
_IS_DUE = runs.c.not_before <= now


def _claim_of(
    due: sa.ColumnElement[bool],
    quarantined: sa.ColumnElement[bool],
    *order: sa.ColumnElement[Any],
) -> sa.Update:
    # As a CTE the locking select is run only once; within IN it may be run again, and lock more.
    # The runs that it locked stay ready until they are claimed here.
    chosen = (
        sa.select(runs.c.id)
        .where(
            runs.c.account == ACCOUNT_ID,
            READY,
            due,
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
_CLAIM, _CLAIM_KEPT = (
    _claim_of(which, sa.false(), runs.c.not_before, runs.c.id) for which in (_IS_DUE, KEPT)
)
_CLAIM_SUSPECT = _claim_of(_IS_DUE, sa.true(), runs.c.failures, runs.c.order_at, runs.c.id).where(
    ~_QUARANTINE_TAKEN
)


def claim(tx: Tx, by: Claimant, rooms: Mapping[int, int], room: int) -> Sequence[Run]:
    """ready -> running, for at most `room` runs, of each account at most its own of the `rooms`.

    Runs that were kept while their account was down come first, if it is up again, then the others
    as they became due. At most one of them is a suspect, and none while the holder has one.
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
        for move in (_CLAIM_KEPT, _CLAIM) if account.has_kept else (_CLAIM,):
            own = rooms[account.id] - sum(run.account == account.id for run in claimed)
            if (at_most := min(own, room - len(claimed))) > 0:
                take(move, account.id, at_most)
    return claimed


_every = sa.select(_earliest.label("due")).select_from(accounts).subquery()
_OLDEST_DUE = sa.select(now - sa.func.min(_every.c.due)).where(_every.c.due <= now)


def oldest_due(tx: Tx) -> float | None:
    """Seconds for which the oldest due ready run has waited; None when there is none."""
    age = tx.scalar(_OLDEST_DUE)
    return None if age is None else float(age)
