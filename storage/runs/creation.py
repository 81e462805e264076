"""Creation of runs, and messages that join one until somebody claims it.

A message can join a run, and an edit of one of its messages is used, only as long as the run was
never claimed. Both lock the run, and a claim reads the messages after it has taken it, so it reads
all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.domain.run import Run, RunState
from storage import holders as holder_rows
from storage.runs.claims import Claimant
from storage.runs.rows import IS_RUN, RUN
from storage.schema.tables import holders, inbound, runs
from storage.statements.binds import WAIT
from storage.statements.clock import now
from storage.statements.insert import insert_rows
from storage.statements.literals import is_in, word
from storage.statements.sets import Rows, among, within
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be made. `order_at` is the provider's time of its message, in epoch seconds; None
    puts the run behind all that wait. `wait` delays its start, in seconds.

    `head`: no other run of the chat is live, so it is ready instead of waiting. With `by`, a head
    that is due at once is born running, if that holder is alive and not draining.
    """

    account: int
    chat: int
    request_id: str
    order_at: float | None
    head: bool
    by: Claimant | None = None
    wait: float = 0.0
    album: str = ""


_new = Rows(
    "new",
    account=sa.BigInteger(),
    chat=sa.BigInteger(),
    request_id=sa.Text(),
    order_at=sa.Double(),
    wait=sa.Double(),
    album=sa.Text(),
    head=sa.Boolean(),
    holder_id=sa.BigInteger(),
    lease_seconds=sa.Double(),
    run_deadline=sa.Double(),
)
_at_work = sa.and_(
    holders.c.id == _new.c.holder_id,
    holder_rows.alive(holders.c.id, _new.c.lease_seconds),
    ~holders.c.draining,
)
_may_run = sa.and_(_new.c.head, _new.c.wait == 0, holders.c.id.is_not(None))


def _if_running(value: Any, otherwise: Any) -> sa.ColumnElement[Any]:
    return sa.case((_may_run, value), else_=otherwise)


_ready = sa.case((_new.c.head, word(RunState.READY)), else_=word(RunState.WAITING))
_before = runs.alias("before")
_last = (
    sa.select(sa.func.max(_before.c.order_at))
    .where(_before.c.chat == _new.c.chat, is_in(_before.c.state, RunState.WAITING))
    .correlate(_new.table)
    .scalar_subquery()
)
# Without a provider's time, runs must keep their order even if our clock was set back.
_order_at = sa.func.coalesce(_new.c.order_at, sa.case((_last > now, _last), else_=now))
_ONE: sa.ColumnElement[int] = sa.literal_column("1")
_ZERO: sa.ColumnElement[int] = sa.literal_column("0")
_CREATE = insert_rows(
    runs,
    _new,
    joined=_new.table.outerjoin(holders, _at_work),
    order_at=_order_at,
    state=_if_running(word(RunState.RUNNING), _ready),
    holder=_if_running(holders.c.id, sa.null()),
    fence=_if_running(_ONE, _ZERO),
    attempts=_if_running(_ONE, _ZERO),
    claimed_at=_if_running(now, sa.null()),
    deadline_at=_if_running(now + _new.c.run_deadline, sa.null()),
    not_before=now + _new.c.wait,
    idle_since=now,
    created_at=now,
    messages=_ONE,
).returning(*RUN.columns)


def create(tx: Tx, new: Sequence[NewRun]) -> Mapping[int, Run]:
    """(message) -> waiting | ready | running, for at most one run of each chat; the chats are
    locked. Returns the runs by their chats."""
    rows = _new.of(
        (
            run.account,
            run.chat,
            run.request_id,
            run.order_at,
            run.wait,
            run.album,
            run.head,
            *((None, None, None) if run.by is None else run.by.values.values()),
        )
        for run in new
    )
    return {run.chat: run for run in RUN.all(tx.execute(_CREATE, rows))}


# Whose answer is stored, an apology that an operator wanted, answers nothing more.
_UNCLAIMED = sa.and_(
    runs.c.attempts == 0,
    is_in(runs.c.state, RunState.WAITING, RunState.READY),
    runs.c.replied == sa.false(),
)
_joined = Rows("joined", run_id=sa.BigInteger(), wait=sa.Double(), until=sa.Double())
_LATER = now + _joined.c.wait
_JOIN = (
    sa.update(runs)
    .where(runs.c.id == _joined.c.run_id, _UNCLAIMED)
    .values(
        messages=runs.c.messages + 1,
        not_before=sa.case(
            (_joined.c.wait == 0, runs.c.not_before),
            (_joined.c.until > _LATER, _LATER),
            else_=_joined.c.until,
        ),
    )
    .returning(runs.c.id)
)
_free = sa.select(runs.c.id).where(among(runs.c.id, "run_ids"), _UNCLAIMED)
_JOIN_FREE = _JOIN.where(
    within(
        runs.c.id,
        sa.select(_free.with_for_update(skip_locked=True, key_share=True).cte("free").c.id),
    )
)


def join(tx: Tx, joined: Sequence[tuple[int, float, float]], *, at_once: bool) -> frozenset[int]:
    """Add a message to each of these runs, given as (run, wait, until). Returns those that took it:
    the others were claimed, or, with `at_once`, are locked by somebody else.

    A run that waits for more (an album, a quiet time) is put off by `wait` seconds from now, at
    most to `until` (epoch seconds).
    """
    rows = _joined.of(joined)
    if not at_once:
        return frozenset(tx.scalars(_JOIN, rows))
    return frozenset(tx.scalars(_JOIN_FREE, rows | {"run_ids": [run for run, _, _ in joined]}))


_GATHER_ON = (
    sa.update(runs)
    .where(
        among(runs.c.account, "account_ids"),
        is_in(runs.c.state, RunState.READY),
        runs.c.attempts == 0,
        runs.c.album != sa.literal_column("''"),
        runs.c.not_before < now + WAIT,
    )
    .values(not_before=now + WAIT)
)


def gather_on(tx: Tx, account_ids: Sequence[int], wait: float) -> None:
    """Put off runs that wait for the rest of an album by `wait` seconds from now."""
    tx.execute(_GATHER_ON, {"account_ids": list(account_ids), "wait": wait})


_LOCK_UNCLAIMED = sa.select(1).where(IS_RUN, _UNCLAIMED).with_for_update(key_share=True)


def lock_unclaimed(tx: Tx, run: int) -> bool:
    """Tell whether this run was never claimed, and lock it until the transaction ends."""
    return tx.execute(_LOCK_UNCLAIMED, {"run_id": run}).first() is not None


_messages = sa.select(sa.func.count()).where(inbound.c.run == runs.c.id).scalar_subquery()
_RECOUNT = sa.update(runs).where(IS_RUN).values(messages=_messages)


def recount_messages(tx: Tx, run: int) -> None:
    """Count the messages of a run that took several at once."""
    tx.execute(_RECOUNT, {"run_id": run})


_times = Rows("times", run_id=sa.BigInteger(), sent_at=sa.Double())
_earliest = (
    sa.select(_times.c.run_id, sa.func.min(_times.c.sent_at).label("sent_at"))
    .group_by(_times.c.run_id)
    .subquery()
)
_WRITTEN_AT = (
    sa.update(runs)
    .where(
        runs.c.id == _earliest.c.run_id,
        runs.c.attempts == 0,
        runs.c.order_at > _earliest.c.sent_at,
    )
    .values(order_at=_earliest.c.sent_at)
)


def written_at(tx: Tx, times: Sequence[tuple[int, float]]) -> None:
    """Order runs that were never claimed by the earliest of these times, given as (run, the time at
    which a message of it was written, in epoch seconds)."""
    tx.execute(_WRITTEN_AT, _times.of(times))
