"""Facts that need an operator's eyes. Each question reads an index of what is unusual (dead
holders, live runs, doubtful parts), never the whole history, and is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from bot.domain.delivery import PartState
from bot.domain.ending import Ending
from bot.domain.reply import ANSWERING, PartKind
from bot.domain.run import RunState
from storage.holders import alive, since_renewal
from storage.runs.rows import KEPT
from storage.schema.tables import (
    Watched,
    accounts,
    chats,
    holders,
    inbound,
    outbox,
    payloads,
    retention,
    runs,
)
from storage.schema.tables.processes import RESTORED
from storage.statements.binds import ACCOUNT_ID, LEASE_SECONDS
from storage.statements.clock import now
from storage.statements.literals import is_in, is_not
from storage.statements.sets import among, within
from storage.statements.tx import Result, Row, Tx

AT_MOST = 200
"""Rows of one kind."""

_RUNS = 1000
"""Live runs whose parts are looked at."""
_LOOKED_AT = sa.literal_column("10000", sa.Integer)
"""Ready or waiting runs that are looked at: how many there are, the gauges say."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that stands still: the row's id, since how many seconds, and what it says. `wait`
    is the seconds until it is due, 0 where it is due or nobody knows."""

    id: int
    since: float
    says: str = ""
    run: int | None = None
    account: int = 0
    count: int = 1
    wait: float = 0.0
    chat: int = 0


# The conditions of the indexes that these questions read, in their words.
_LIVE = is_not(runs.c.state, RunState.ENDED)
_WAITING = is_in(runs.c.state, RunState.WAITING)
_READY = is_in(runs.c.state, RunState.READY)
_RUNNING = is_in(runs.c.state, RunState.RUNNING)
_READY_ONES = within(
    runs.c.id,
    sa.select(runs.c.id)
    .where(_READY)
    .order_by(runs.c.account, runs.c.not_before, runs.c.id)
    .limit(_LOOKED_AT),
)
_HEADS = (_READY_ONES, _RUNNING)
_STANDALONE_PENDING = is_in(outbox.c.watched, Watched.DUE)


def _later(one: sa.ColumnElement[float], other: sa.ColumnElement[float]) -> sa.ColumnElement[float]:
    return sa.case((one > other, one), else_=other)


_OLDER = sa.bindparam("older", type_=sa.Double)
_ONLY = sa.bindparam("only", type_=sa.BigInteger)
_AT_MOST = sa.literal_column(str(AT_MOST), sa.Integer)


class _Question:
    """A question about all that there is, and the same about one run or chat alone (`of`).
    `of_all` and `of_one` are what only the one or the other has as a condition."""

    def __init__(
        self,
        question: sa.Select[*tuple[Any, ...]],
        of: sa.Column[int],
        of_all: Sequence[sa.ColumnElement[bool]] = (),
        of_one: Sequence[sa.ColumnElement[bool]] = (),
    ) -> None:
        self._all = question.where(*of_all).limit(_AT_MOST)
        self._one = question.where(of == _ONLY, *of_one).limit(_AT_MOST)

    def rows(self, tx: Tx, only: int | None, **values: object) -> Result[Row]:
        """Its rows, with these values for its binds."""
        if only is None:
            return tx.execute(self._all, values)
        return tx.execute(self._one, {**values, "only": only})

    def facts(self, tx: Tx, only: int | None, **values: object) -> Sequence[Fact]:
        """One fact a row, whose columns are a fact's fields from the first on."""
        return [Fact(*row) for row in self.rows(tx, only, **values)]


def _of_runs(
    since: sa.ColumnElement[float],
    says: sa.ColumnElement[str],
    *conditions: sa.ColumnElement[bool],
) -> _Question:
    """A fact for each run of these conditions."""
    columns = runs.c.id, since, says, runs.c.id, runs.c.account
    return _Question(sa.select(*columns).where(*conditions), runs.c.id)


_DEAD = _Question(
    sa.select(runs.c.id, since_renewal, holders.c.name, runs.c.id, runs.c.account)
    .join(holders, holders.c.id == runs.c.holder)
    .where(_RUNNING, ~alive(runs.c.holder, LEASE_SECONDS)),
    runs.c.id,
)


def dead_runs(tx: Tx, lease_seconds: float, only: int | None = None) -> Sequence[Fact]:
    """Running runs whose holder may not be believed alive; says who held them."""
    return _DEAD.facts(tx, only, lease_seconds=lease_seconds)


_LATE = _of_runs(
    now - runs.c.deadline_at,
    runs.c.detail,
    _RUNNING,
    runs.c.replied != sa.true(),
    runs.c.deadline_at < now - _OLDER,
)


def late_runs(tx: Tx, older: float, only: int | None = None) -> Sequence[Fact]:
    """Running runs that are past their deadline for `older` s and still at the agent."""
    return _LATE.facts(tx, only, older=older)


_ASIDE = _of_runs(
    now - runs.c.idle_since,
    runs.c.set_aside,
    is_not(runs.c.state, RunState.RUNNING),
    _LIVE,
    runs.c.set_aside.is_not(None),
)


def runs_set_aside(tx: Tx, only: int | None = None) -> Sequence[Fact]:
    """Runs that are kept from being claimed."""
    return _ASIDE.facts(tx, only)


_UNCLAIMED = _Question(
    sa.select(
        runs.c.id,
        now - _later(runs.c.not_before, runs.c.idle_since),
        runs.c.detail,
        runs.c.id,
        runs.c.account,
    )
    .where(
        runs.c.set_aside.is_(None),
        runs.c.not_before <= now - _OLDER,
        runs.c.idle_since <= now - _OLDER,
    )
    .order_by(runs.c.not_before),
    runs.c.id,
    of_all=(_READY_ONES,),
    of_one=(_READY,),
)


def unclaimed_runs(tx: Tx, older: float, only: int | None = None) -> Sequence[Fact]:
    """Ready runs that are due for `older` s, oldest first."""
    return _UNCLAIMED.facts(tx, only, older=older)


_ONE = sa.literal_column("1", sa.Integer)
_PUT_OFF = _Question(
    sa.select(
        runs.c.id,
        now - runs.c.created_at,
        runs.c.detail,
        runs.c.id,
        runs.c.account,
        _ONE,
        runs.c.not_before - now,
    )
    .where(
        runs.c.set_aside.is_(None),
        runs.c.not_before > now,
        ~KEPT,
        runs.c.created_at <= now - _OLDER,
    )
    .order_by(runs.c.created_at),
    runs.c.id,
    of_all=(_READY_ONES,),
    of_one=(_READY,),
)


def put_off_runs(tx: Tx, older: float, only: int | None = None) -> Sequence[Fact]:
    """Ready runs that are due later and whose messages wait for `older` s; says why."""
    return _PUT_OFF.facts(tx, only, older=older)


@dataclass(frozen=True, slots=True)
class Queue:
    """A chat in which messages wait: since when the oldest, behind which run, or paused, and if
    that is because its agent asked for a person."""

    chat: int
    account: int
    since: float
    waiting: int
    head: int | None
    head_state: str
    paused: bool
    handed_over: bool


def _waiting(*conditions: sa.ColumnElement[bool]) -> sa.Select[*tuple[Any, ...]]:
    head = runs.alias("head")
    leads = is_in(head.c.state, RunState.READY, RunState.RUNNING)
    # In the order of their index: in none, the planner hopes to meet them early in the table.
    some = (
        sa.select(runs.c.chat, runs.c.created_at)
        .where(_WAITING, *conditions)
        .order_by(runs.c.chat, runs.c.order_at, runs.c.id)
        .limit(_LOOKED_AT)
        .subquery()
    )
    oldest = sa.func.min(some.c.created_at)
    waits = (
        sa.select(some.c.chat, oldest.label("oldest"), sa.func.count().label("waiting"))
        .group_by(some.c.chat)
        .having(oldest <= now - _OLDER)
        .order_by(oldest)
        .limit(_AT_MOST)
        .subquery()
    )
    return (
        sa.select(
            waits.c.chat,
            chats.c.account,
            now - waits.c.oldest,
            waits.c.waiting,
            head.c.id,
            sa.func.coalesce(head.c.state, ""),
            sa.and_(chats.c.paused_until.is_not(None), chats.c.paused_until > now),
            chats.c.handoff_at.is_not(None),
        )
        .join(chats, chats.c.id == waits.c.chat)
        .outerjoin(head, sa.and_(head.c.chat == waits.c.chat, leads))
    )


_WAITING_CHATS, _WAITING_CHAT = _waiting(), _waiting(runs.c.chat == _ONLY)


def waiting_chats(tx: Tx, older: float, only: int | None = None) -> Sequence[Queue]:
    """Chats whose oldest waiting run waits for `older` s, or only this chat."""
    rows = (
        tx.execute(_WAITING_CHATS, {"older": older})
        if only is None
        else tx.execute(_WAITING_CHAT, {"older": older, "only": only})
    )
    return [Queue(*row) for row in rows]


PART_MOVED_AT = _later(outbox.c.started_at, outbox.c.created_at)
"""The last send of a part, or else when it was stored."""


def _of_parts(*conditions: sa.ColumnElement[bool], of: sa.Column[int] = outbox.c.run) -> _Question:
    """A fact for each part of these conditions."""
    columns = (
        outbox.c.id,
        now - PART_MOVED_AT,
        outbox.c.error,
        outbox.c.run,
        outbox.c.account,
        _ONE,
        sa.literal(0.0, sa.Double),
        outbox.c.chat,
    )
    return _Question(sa.select(*columns).where(*conditions), of)


_ORPHANS = _of_parts(
    is_in(outbox.c.watched, Watched.LEAVING), ~alive(outbox.c.holder, LEASE_SECONDS)
)


def orphan_parts(tx: Tx, lease_seconds: float, only: int | None = None) -> Sequence[Fact]:
    """Parts that a dead holder was sending and no run looks after."""
    return _ORPHANS.facts(tx, only, lease_seconds=lease_seconds)


_ASKED_FOR = outbox.c.kind != PartKind.NOTICE.value
"""Words that somebody wants the person to have: a notice that is lost needs nobody's eyes."""


_ending = sa.select(runs.c.ending).where(runs.c.id == outbox.c.run).correlate(outbox)
_UNATTENDED = sa.or_(
    outbox.c.run.is_(None),
    is_in(_ending.scalar_subquery(), *(ending for ending in Ending if ending.needs_eyes)),
)
"""No run looks after the part any more, and nobody has settled what became of it."""


UNCERTAIN = (
    is_in(outbox.c.watched, Watched.UNCERTAIN, Watched.UNSURE),
    _ASKED_FOR,
    _UNATTENDED,
)
"""The one meaning of an uncertain part that needs eyes: for every list, count and sentence."""


_SETTLED_AT = (
    sa.select(retention.c.at)
    .where(retention.c.what == RESTORED, retention.c.id == 1)
    .scalar_subquery()
)
_SAYS = sa.select(1).where(outbox.c.run == runs.c.id, is_in(outbox.c.kind, *sorted(ANSWERING)))
_ASKS = sa.select(1).where(inbound.c.run == runs.c.id)
_SETTLING = 60.0
"""Seconds that the settling of a backup takes at most."""


_RESTORED = _of_runs(
    now - runs.c.ended_at,
    runs.c.detail,
    runs.c.ended_at >= _SETTLED_AT - _SETTLING,
    runs.c.ended_at <= _SETTLED_AT + _SETTLING,
    is_in(runs.c.ending, Ending.UNCERTAIN),
    ~sa.exists(_SAYS).correlate(runs),
    sa.exists(_ASKS).correlate(runs),  # which a later run answers, if somebody wants it
)


def restored_runs(tx: Tx, only: int | None = None) -> Sequence[Fact]:
    """Runs without an answer that were open in the backup from which the database came."""
    return _RESTORED.facts(tx, only)


_UNCERTAIN_PARTS, _UNCERTAIN_OF_CHAT = (
    _of_parts(*UNCERTAIN),
    _of_parts(*UNCERTAIN, of=outbox.c.chat),
)


def uncertain_parts(tx: Tx, only: int | None = None, chat: int | None = None) -> Sequence[Fact]:
    """Parts that may have arrived and that no process looks after any more; of one run or chat."""
    if chat is not None:
        return _UNCERTAIN_OF_CHAT.facts(tx, chat)
    return _UNCERTAIN_PARTS.facts(tx, only)


REFUSED = (is_in(outbox.c.watched, Watched.REFUSED), _ASKED_FOR, _UNATTENDED)
"""The one meaning of a refused part that needs eyes."""
_REFUSED = _of_parts(*REFUSED, outbox.c.created_at > now - _OLDER)


def refused_parts(tx: Tx, newer: float, only: int | None = None) -> Sequence[Fact]:
    """Parts that were refused for ever within the last `newer` s."""
    return _REFUSED.facts(tx, only, older=newer)


_UNSENT = _of_parts(
    _STANDALONE_PENDING,
    _ASKED_FOR,
    outbox.c.not_before <= now - _OLDER,
    outbox.c.created_at <= now - _OLDER,
)


def unsent_words(tx: Tx, older: float, only: int | None = None) -> Sequence[Fact]:
    """Standalone messages (an operator's words, answers sent again) that are due for `older` s."""
    return _UNSENT.facts(tx, only, older=older)


_due = _later(outbox.c.not_before, chats.c.not_before)
_DELAYED = (
    sa.select(
        outbox.c.id,
        now - outbox.c.created_at,
        outbox.c.error,
        outbox.c.run,
        outbox.c.account,
        _ONE,
        _due - now,
    )
    .join(chats, chats.c.id == outbox.c.chat)
    .where(_due > now, outbox.c.created_at <= now - _OLDER)
)
_DELAYED_OF_RUNS = _Question(
    _DELAYED.where(among(outbox.c.run, "heads"), is_in(outbox.c.state, PartState.PENDING)),
    outbox.c.run,
)
_DELAYED_ALONE = _Question(_DELAYED.where(_STANDALONE_PENDING), outbox.c.run)
_REPLIED = [
    sa.select(runs.c.id)
    .where(some, runs.c.replied == sa.true())
    .limit(sa.literal_column(str(_RUNS)))
    for some in _HEADS
]
_REPLIED_ONE = sa.select(runs.c.id).where(
    runs.c.id == _ONLY,
    is_in(runs.c.state, RunState.READY, RunState.RUNNING),
    runs.c.replied == sa.true(),
)


def delayed_parts(tx: Tx, older: float, only: int | None = None) -> Sequence[Fact]:
    """Parts older than `older` s that wait for a platform's limit, of runs or standalone."""
    # Not all that is live: where many wait, the planner hopes to meet these early in the table.
    heads = (
        [run for some in _REPLIED for run in tx.scalars(some)]
        if only is None
        else tx.scalars(_REPLIED_ONE, {"only": only}).all()
    )
    of_runs = _DELAYED_OF_RUNS.facts(tx, only, older=older, heads=heads)
    return [*of_runs, *_DELAYED_ALONE.facts(tx, only, older=older)]


_UNPARSED = sa.select(
    sa.func.max(payloads.c.id), now - sa.func.min(payloads.c.received_at), sa.func.count()
).where(payloads.c.error.is_not(None))
_ITS_ERROR = sa.select(payloads.c.error).where(payloads.c.id == _ONLY)


def unparsed_payloads(tx: Tx) -> Fact | None:
    """All dead letters as one fact: the newest one, since the oldest."""
    newest, since, count = tx.execute(_UNPARSED).one()
    if not count:
        return None
    error = tx.scalars(_ITS_ERROR, {"only": newest}).one()
    return Fact(newest, since, error or "", count=count)


def _of_accounts(since: sa.Column[Any], reason: sa.Column[Any]) -> _Question:
    said = accounts.c.channel + " " + accounts.c.account + ": " + reason
    question = sa.select(accounts.c.id, now - since, said, sa.null(), accounts.c.id)
    return _Question(question.where(since.is_not(None)), accounts.c.id)


_DOWN = _of_accounts(accounts.c.down_since, accounts.c.down_reason)
_CUT_OFF = _of_accounts(accounts.c.cut_off_since, accounts.c.cut_off_reason)
_KEPT = sa.select(runs.c.id).where(runs.c.account == ACCOUNT_ID, _READY, KEPT).limit(AT_MOST)


def accounts_down(tx: Tx) -> Sequence[Fact]:
    """Accounts that can't send; counts the runs whose answers are stored and wait for them, up
    to AT_MOST."""
    return [
        replace(fact, count=len(tx.scalars(_KEPT, {"account_id": fact.id}).all()))
        for fact in _DOWN.facts(tx, None)
    ]


def accounts_cut_off(tx: Tx) -> Sequence[Fact]:
    """Accounts of which nothing comes in, as far as a process that polls has met it."""
    return _CUT_OFF.facts(tx, None)


def overdue_holders(tx: Tx, lease_seconds: float) -> int:
    """The number of holders that did not renew in time and were declared dead by nobody."""
    question = sa.select(sa.func.count()).where(
        holders.c.gone_at.is_(None), ~alive(holders.c.id, lease_seconds)
    )
    return int(tx.scalars(question).one())


def live_senders(tx: Tx, lease_seconds: float) -> int:
    """The number of processes that work on runs and may be believed alive."""
    question = sa.select(sa.func.count()).where(
        alive(holders.c.id, lease_seconds), holders.c.role != "web"
    )
    return int(tx.scalars(question).one())
