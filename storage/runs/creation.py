"""Creation of runs, and messages that join one until somebody claims it.

A message makes a run, or joins the one that waits; an edit is used while nobody has begun. Both
hold only for a run that was never claimed, and a claim commits before it reads its messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.domain.run import Run, RunState
from storage import holders as holder_rows
from storage.engine.binds import ACCOUNT_ID, HOLDER_ID, LEASE_SECONDS, WAIT
from storage.engine.clock import now
from storage.engine.literals import is_in, word
from storage.engine.sets import Rows, among
from storage.engine.tx import Tx
from storage.runs.claims import Claimant
from storage.runs.rows import IS_RUN, RUN
from storage.schema.tables import accounts, holders, inbound, runs


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be made at intake. Times in epoch seconds; `wait` delays its start."""

    account: int
    chat: int
    request_id: str
    order_at: float
    wait: float
    album: str


_INSERT = (
    sa.insert(runs)
    .values(not_before=now + WAIT, idle_since=now, created_at=now, messages=sa.literal_column("1"))
    .returning(*RUN.columns)
)
_MAY_RUN = sa.and_(
    holder_rows.alive(HOLDER_ID, LEASE_SECONDS),
    sa.exists(sa.select(1).where(holders.c.id == HOLDER_ID, ~holders.c.draining)),
    sa.exists(sa.select(1).where(accounts.c.id == ACCOUNT_ID, accounts.c.down_since.is_(None))),
)
_ONCE = sa.case((_MAY_RUN, sa.literal_column("1")), else_=sa.literal_column("0"))
_INSERT_CLAIMED = _INSERT.values(
    state=sa.case((_MAY_RUN, word(RunState.RUNNING)), else_=word(RunState.READY)),
    holder=sa.case((_MAY_RUN, HOLDER_ID), else_=sa.null()),
    fence=_ONCE,
    attempts=_ONCE,
    claimed_at=sa.case((_MAY_RUN, now), else_=sa.null()),
    deadline_at=sa.case((_MAY_RUN, now + sa.bindparam("run_deadline")), else_=sa.null()),
)


def create(tx: Tx, new: NewRun, by: Claimant | None, *, head: bool) -> Run:
    """(message) -> waiting | ready | running. With `by` and `head` it is born claimed, if that
    holder is alive and not draining, its account can send, and the run is due at once."""
    values: dict[str, object] = {
        "account": new.account,
        "chat": new.chat,
        "request_id": new.request_id,
        "order_at": new.order_at,
        "wait": new.wait,
        "album": new.album,
    }
    if head and by is not None and not new.wait:
        values |= by.values | {"account_id": new.account}
        return RUN.read(tx.execute(_INSERT_CLAIMED, values).one())
    values["state"] = RunState.READY.value if head else RunState.WAITING.value
    return RUN.read(tx.execute(_INSERT, values).one())


_UNCLAIMED = sa.and_(
    IS_RUN, runs.c.attempts == 0, is_in(runs.c.state, RunState.WAITING, RunState.READY)
)
_UNTIL = sa.bindparam("until", type_=sa.Double)
_LATER = now + WAIT
_JOIN = sa.update(runs).where(_UNCLAIMED).values(messages=runs.c.messages + 1)
_JOIN_GATHERING = _JOIN.values(not_before=sa.case((_LATER < _UNTIL, _LATER), else_=_UNTIL))


def join(tx: Tx, run: int, wait: float, until: float) -> bool:
    """Add a message to a run that was never claimed. False: somebody claimed it first.

    A run that collects (an album, a quiet time) is put off again by `wait` seconds, at most
    to `until` (epoch seconds).
    """
    values: dict[str, object] = {"run_id": run}
    if not wait:
        return tx.execute(_JOIN, values).rowcount == 1
    return tx.execute(_JOIN_GATHERING, values | {"wait": wait, "until": until}).rowcount == 1


_GATHER_ON = (
    sa.update(runs)
    .where(
        among(runs.c.account, "account_ids"),
        runs.c.attempts == 0,
        is_in(runs.c.state, RunState.WAITING, RunState.READY),
        runs.c.album != sa.literal_column("''"),
        runs.c.not_before < _LATER,
    )
    .values(not_before=_LATER)
)


def gather_on(tx: Tx, account_ids: Sequence[int], wait: float) -> None:
    """Runs that collect, and that nobody has claimed, wait `wait` seconds for more."""
    tx.execute(_GATHER_ON, {"account_ids": list(account_ids), "wait": wait})


_LOCK_UNCLAIMED = sa.select(1).where(_UNCLAIMED).with_for_update(key_share=True)


def lock_unclaimed(tx: Tx, run: int) -> bool:
    """Whether nobody has claimed this run; locks it until the transaction ends."""
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
    """(run, when a message of it was written, in epoch seconds): order runs that nobody has begun
    by the earliest of them."""
    tx.execute(_WRITTEN_AT, _times.of(times))
