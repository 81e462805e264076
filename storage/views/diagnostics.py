"""Facts that need an operator's eyes. Each question reads an index of what is unusual (dead
holders, live runs, doubtful parts), never the whole history, and is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from bot.domain.delivery import PartState
from bot.domain.ending import Ending
from bot.domain.reply import PartKind
from bot.domain.run import RunState
from storage.engine.name_lock import is_held
from storage.holders import HolderRow, alive, listed
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
from storage.statements.binds import ACCOUNT_ID
from storage.statements.clock import lease_clock, lease_now, now
from storage.statements.literals import is_in, is_not
from storage.statements.sets import within
from storage.statements.tx import Tx

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
_READY_ONES, _WAITING_ONES = (
    within(runs.c.id, some.limit(_LOOKED_AT))
    for some in (
        sa.select(runs.c.id).where(_READY).order_by(runs.c.account, runs.c.not_before, runs.c.id),
        sa.select(runs.c.id).where(_WAITING),
    )
)
_HEADS = (_READY_ONES, _RUNNING)
_STANDALONE_PENDING = is_in(outbox.c.watched, Watched.DUE)


def _later(one: sa.ColumnElement[float], other: sa.ColumnElement[float]) -> sa.ColumnElement[float]:
    return sa.case((one > other, one), else_=other)


def _facts(tx: Tx, question: sa.Select[*tuple[Any, ...]]) -> Sequence[Fact]:
    """One fact a row, whose columns are a fact's fields from the first on."""
    return [Fact(*row) for row in tx.execute(question.limit(AT_MOST))]


def _run_facts(
    tx: Tx,
    since: sa.ColumnElement[float],
    says: sa.ColumnElement[str],
    *conditions: sa.ColumnElement[bool],
    only: int | None,
) -> Sequence[Fact]:
    """A fact for each run of these conditions, or of them only for one."""
    question = sa.select(runs.c.id, since, says, runs.c.id, runs.c.account).where(*conditions)
    return _facts(tx, question if only is None else question.where(runs.c.id == only))


def dead_runs(tx: Tx, lease_seconds: float, only: int | None = None) -> Sequence[Fact]:
    """Running runs whose holder may not be believed alive; says who held them."""
    silent = sa.case(
        (holders.c.clock == lease_clock, lease_now - holders.c.renewed_at),
        else_=now - runs.c.claimed_at,
    )
    question = (
        sa.select(runs.c.id, silent, holders.c.name, runs.c.id, runs.c.account)
        .join(holders, holders.c.id == runs.c.holder)
        .where(_RUNNING, ~alive(runs.c.holder, lease_seconds))
    )
    return _facts(tx, question if only is None else question.where(runs.c.id == only))


def late_runs(tx: Tx, older: float, only: int | None = None) -> Sequence[Fact]:
    """Running runs that are past their deadline for `older` s and still at the agent."""
    late = (_RUNNING, runs.c.replied != sa.true(), runs.c.deadline_at < now - older)
    return _run_facts(tx, now - runs.c.deadline_at, runs.c.detail, *late, only=only)


def runs_set_aside(tx: Tx, only: int | None = None) -> Sequence[Fact]:
    """Runs that are kept from being claimed."""
    aside = (is_not(runs.c.state, RunState.RUNNING), _LIVE, runs.c.set_aside.is_not(None))
    return _run_facts(tx, now - runs.c.idle_since, runs.c.set_aside, *aside, only=only)


def unclaimed_runs(tx: Tx, older: float, only: int | None = None) -> Sequence[Fact]:
    """Ready runs that are due for `older` s, oldest first."""
    question = (
        sa.select(
            runs.c.id,
            now - _later(runs.c.not_before, runs.c.idle_since),
            runs.c.detail,
            runs.c.id,
            runs.c.account,
        )
        .where(
            _READY_ONES,
            runs.c.set_aside.is_(None),
            runs.c.not_before <= now - older,
            runs.c.idle_since <= now - older,
        )
        .order_by(runs.c.not_before)
    )
    return _facts(tx, question if only is None else question.where(runs.c.id == only))


_ONE = sa.literal_column("1", sa.Integer)


def put_off_runs(tx: Tx, older: float, only: int | None = None) -> Sequence[Fact]:
    """Ready runs that are due later and whose messages wait for `older` s; says why."""
    question = (
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
            _READY_ONES,
            runs.c.set_aside.is_(None),
            runs.c.not_before > now,
            ~KEPT,
            runs.c.created_at <= now - older,
        )
        .order_by(runs.c.created_at)
    )
    return _facts(tx, question if only is None else question.where(runs.c.id == only))


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


def waiting_chats(tx: Tx, older: float, only: int | None = None) -> Sequence[Queue]:
    """Chats whose oldest waiting run waits for `older` s, or only this chat."""
    head = runs.alias("head")
    leads = is_in(head.c.state, RunState.READY, RunState.RUNNING)
    oldest = sa.func.min(runs.c.created_at)
    waits = (
        sa.select(runs.c.chat, oldest.label("oldest"), sa.func.count().label("waiting"))
        .where(_WAITING_ONES, *(() if only is None else (runs.c.chat == only,)))
        .group_by(runs.c.chat)
        .having(oldest <= now - older)
        .order_by(oldest)
        .limit(AT_MOST)
        .subquery()
    )
    question = (
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
    return [Queue(*row) for row in tx.execute(question)]


def _part_facts(
    tx: Tx, *conditions: sa.ColumnElement[bool], only: int | None = None
) -> Sequence[Fact]:
    """A fact for each part of these conditions, or of them only for those of one run."""
    question = sa.select(
        outbox.c.id,
        now - _later(outbox.c.started_at, outbox.c.created_at),
        outbox.c.error,
        outbox.c.run,
        outbox.c.account,
        _ONE,
        sa.literal(0.0, sa.Double),
        outbox.c.chat,
    ).where(*conditions)
    return _facts(tx, question if only is None else question.where(outbox.c.run == only))


def orphan_parts(tx: Tx, lease_seconds: float, only: int | None = None) -> Sequence[Fact]:
    """Parts that a dead holder was sending and no run looks after."""
    leaving = is_in(outbox.c.watched, Watched.LEAVING)
    return _part_facts(tx, leaving, ~alive(outbox.c.holder, lease_seconds), only=only)


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
_SAYS = sa.select(1).where(
    outbox.c.run == runs.c.id, is_in(outbox.c.kind, PartKind.REPLY, PartKind.APOLOGY)
)
_ASKS = sa.select(1).where(inbound.c.run == runs.c.id)
_SETTLING = 60.0
"""Seconds that the settling of a backup takes at most."""


def restored_runs(tx: Tx, only: int | None = None) -> Sequence[Fact]:
    """Runs without an answer that were open in the backup from which the database came."""
    return _run_facts(
        tx,
        now - runs.c.ended_at,
        runs.c.detail,
        runs.c.ended_at >= _SETTLED_AT - _SETTLING,
        runs.c.ended_at <= _SETTLED_AT + _SETTLING,
        is_in(runs.c.ending, Ending.UNCERTAIN),
        ~sa.exists(_SAYS).correlate(runs),
        sa.exists(_ASKS).correlate(runs),  # which a later run answers, if somebody wants it
        only=only,
    )


def uncertain_parts(tx: Tx, only: int | None = None, chat: int | None = None) -> Sequence[Fact]:
    """Parts that may have arrived and that no process looks after any more; of one run or chat."""
    of_chat = () if chat is None else (outbox.c.chat == chat,)
    return _part_facts(tx, *UNCERTAIN, *of_chat, only=only)


def refused_parts(tx: Tx, newer: float, only: int | None = None) -> Sequence[Fact]:
    """Parts that were refused for ever within the last `newer` s."""
    refused = is_in(outbox.c.watched, Watched.REFUSED)
    late = outbox.c.created_at > now - newer
    return _part_facts(tx, refused, _ASKED_FOR, _UNATTENDED, late, only=only)


def unsent_words(tx: Tx, older: float, only: int | None = None) -> Sequence[Fact]:
    """Standalone messages (an operator's words, answers sent again) that are due for `older` s."""
    return _part_facts(
        tx,
        _STANDALONE_PENDING,
        _ASKED_FOR,
        outbox.c.not_before <= now - older,
        outbox.c.created_at <= now - older,
        only=only,
    )


def delayed_parts(tx: Tx, older: float, only: int | None = None) -> Sequence[Fact]:
    """Parts older than `older` s that wait for a platform's limit, of runs or standalone."""
    due = _later(outbox.c.not_before, chats.c.not_before)
    delayed = (
        sa.select(
            outbox.c.id,
            now - outbox.c.created_at,
            outbox.c.error,
            outbox.c.run,
            outbox.c.account,
            _ONE,
            due - now,
        )
        .join(chats, chats.c.id == outbox.c.chat)
        .where(due > now, outbox.c.created_at <= now - older)
    )
    if only is not None:
        delayed = delayed.where(outbox.c.run == only)
    # Not all that is live: where many wait, the planner hopes to meet these early in the table.
    replied = (sa.select(runs.c.id).where(some, runs.c.replied == sa.true()) for some in _HEADS)
    heads = [run for some in replied for run in tx.scalars(some.limit(_RUNS))]
    of_runs = delayed.where(outbox.c.run.in_(heads), is_in(outbox.c.state, PartState.PENDING))
    return [*_facts(tx, of_runs), *_facts(tx, delayed.where(_STANDALONE_PENDING))]


def unparsed_payloads(tx: Tx) -> Fact | None:
    """All dead letters as one fact: the newest one, since the oldest."""
    question = sa.select(
        sa.func.max(payloads.c.id), now - sa.func.min(payloads.c.received_at), sa.func.count()
    ).where(payloads.c.error.is_not(None))
    newest, since, count = tx.execute(question).one()
    if not count:
        return None
    error = tx.scalars(sa.select(payloads.c.error).where(payloads.c.id == newest)).one()
    return Fact(newest, since, error or "", count=count)


_KEPT = sa.select(runs.c.id).where(runs.c.account == ACCOUNT_ID, _READY, KEPT).limit(AT_MOST)


def accounts_down(tx: Tx) -> Sequence[Fact]:
    """Accounts that can't send; counts the runs whose answers are stored and wait for them, up
    to AT_MOST."""
    return [
        replace(fact, count=len(tx.scalars(_KEPT, {"account_id": fact.id}).all()))
        for fact in _account_facts(tx, accounts.c.down_since, accounts.c.down_reason)
    ]


def accounts_cut_off(tx: Tx) -> Sequence[Fact]:
    """Accounts of which nothing comes in, as far as a process that polls has met it."""
    return _account_facts(tx, accounts.c.cut_off_since, accounts.c.cut_off_reason)


def _account_facts(tx: Tx, since: sa.Column[Any], reason: sa.Column[Any]) -> Sequence[Fact]:
    said = accounts.c.channel + " " + accounts.c.account + ": " + reason
    question = sa.select(accounts.c.id, now - since, said, sa.null(), accounts.c.id)
    return _facts(tx, question.where(since.is_not(None)))


def overdue_holders(tx: Tx, lease_seconds: float) -> int:
    """The number of holders that did not renew in time and were declared dead by nobody."""
    question = sa.select(sa.func.count()).where(
        holders.c.gone_at.is_(None), ~alive(holders.c.id, lease_seconds)
    )
    return int(tx.scalars(question).one())


def silent_holders(tx: Tx, late: float) -> Sequence[HolderRow]:
    """Processes that are there by their names' locks and have not renewed for `late` seconds."""
    newest = {row.name: row for row in sorted(listed(tx, late), key=lambda row: row.id)}
    return [row for row in newest.values() if row.gone and is_held(tx, row.name)]


def live_senders(tx: Tx, lease_seconds: float) -> int:
    """The number of processes that work on runs and may be believed alive."""
    question = sa.select(sa.func.count()).where(
        alive(holders.c.id, lease_seconds), holders.c.role != "web"
    )
    return int(tx.scalars(question).one())
