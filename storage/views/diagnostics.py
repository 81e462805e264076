"""What needs an operator's eyes, as facts. Each question reads an index of what is unusual
(dead holders, live runs, doubtful parts), never the whole history, and is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Label, Select, and_, case, func, or_, select, true

from bot.domain.delivery import PartState
from bot.domain.run import RunState
from storage.engine.clock import lease_clock, lease_now, now
from storage.engine.literals import is_in, is_not
from storage.engine.tx import Tx
from storage.holders import alive
from storage.schema.tables import accounts, chats, holders, outbox, payloads, runs

AT_MOST = 200
"""Rows of one kind."""

_RUNS = 1000
"""Live runs whose parts are looked at."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that stands still: the row's id, since how many seconds, and what it says."""

    id: int
    since: float
    says: str = ""
    run: int | None = None
    account: int = 0
    count: int = 1


def _later(one: ColumnElement[float], other: ColumnElement[float]) -> ColumnElement[float]:
    return case((one > other, one), else_=other)


_LIVE = is_not(runs.c.state, RunState.ENDED)
_DOUBTFUL = is_in(outbox.c.state, PartState.UNCERTAIN, PartState.REFUSED)
"""The conditions of the indexes that these questions read, in their words."""


def _waits_or_is_ready() -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return _LIVE, runs.c.state != "running"


_SINCE_DUE = (now - _later(runs.c.not_before, runs.c.idle_since)).label("since")


def dead_runs(tx: Tx, lease_seconds: float) -> Sequence[Fact]:
    """Running runs whose holder may not be believed alive; says who held them."""
    silent = case(
        (holders.c.clock == lease_clock, lease_now - holders.c.renewed_at),
        else_=now - runs.c.claimed_at,
    )
    question = (
        select(runs.c.id, silent, holders.c.name)
        .join(holders, holders.c.id == runs.c.holder)
        .where(is_in(runs.c.state, RunState.RUNNING), ~alive(runs.c.holder, lease_seconds))
        .limit(AT_MOST)
    )
    return [Fact(*row) for row in tx.execute(question)]


def orphan_parts(tx: Tx, lease_seconds: float) -> Sequence[Fact]:
    """Parts that a dead holder was sending."""
    question = (
        select(outbox.c.id, now - outbox.c.started_at, outbox.c.kind, outbox.c.run)
        .where(is_in(outbox.c.state, PartState.SENDING), ~alive(outbox.c.holder, lease_seconds))
        .limit(AT_MOST)
    )
    return [Fact(*row) for row in tx.execute(question)]


def late_runs(tx: Tx, older: float) -> Sequence[Fact]:
    """Running runs that are past their deadline for `older` s and still at the agent."""
    question = (
        select(runs.c.id, (now - runs.c.deadline_at).label("since"), runs.c.detail)
        .where(
            is_in(runs.c.state, RunState.RUNNING),
            runs.c.replied != true(),
            runs.c.deadline_at < now - older,
        )
        .limit(AT_MOST)
    )
    return [Fact(*row) for row in tx.execute(question)]


def runs_set_aside(tx: Tx) -> Sequence[Fact]:
    """Runs that are kept from being claimed."""
    question = (
        select(runs.c.id, (now - runs.c.idle_since).label("since"), runs.c.set_aside)
        .where(*_waits_or_is_ready(), runs.c.set_aside.is_not(None))
        .limit(AT_MOST)
    )
    return [Fact(*row) for row in tx.execute(question)]


def unclaimed_runs(tx: Tx, older: float) -> Sequence[Fact]:
    """Ready runs that are due for `older` s, oldest first; says why their account is down."""
    question = (
        select(runs.c.id, _SINCE_DUE, accounts.c.down_reason, runs.c.id, runs.c.account)
        .join(accounts, accounts.c.id == runs.c.account)
        .where(
            is_in(runs.c.state, RunState.READY),
            runs.c.set_aside.is_(None),
            runs.c.not_before <= now - older,
            runs.c.idle_since <= now - older,
        )
        .order_by(runs.c.not_before)
        .limit(AT_MOST)
    )
    return [Fact(r[0], r[1], r[2] or "", r[3], r[4]) for r in tx.execute(question)]


def put_off_runs(tx: Tx, older: float) -> Sequence[Fact]:
    """Ready runs that are due later and whose messages wait for `older` s; says for how long
    they are put off and why."""
    question = (
        select(runs.c.id, now - runs.c.created_at, runs.c.not_before - now, runs.c.detail)
        .where(
            is_in(runs.c.state, RunState.READY),
            runs.c.set_aside.is_(None),
            runs.c.not_before > now,
            runs.c.created_at <= now - older,
        )
        .order_by(runs.c.created_at)
        .limit(AT_MOST)
    )
    return [
        Fact(r[0], r[1], f"due in {r[2]:.0f} s" + (f": {r[3]}" if r[3] else ""))
        for r in tx.execute(question)
    ]


@dataclass(frozen=True, slots=True)
class Queue:
    """A chat in which messages wait: since when the oldest, behind which run, or paused."""

    chat: int
    since: float
    waiting: int
    head: int | None
    head_state: str
    paused: bool


def waiting_chats(tx: Tx, older: float) -> Sequence[Queue]:
    """Chats whose oldest waiting run waits for `older` s."""
    head = runs.alias("head")
    leads = is_in(head.c.state, RunState.READY, RunState.RUNNING)
    oldest = func.min(runs.c.created_at)
    waits = (
        select(runs.c.chat, oldest.label("oldest"), func.count().label("waiting"))
        .where(_LIVE, is_in(runs.c.state, RunState.WAITING))
        .group_by(runs.c.chat)
        .having(oldest <= now - older)
        .order_by(oldest)
        .limit(AT_MOST)
        .subquery()
    )
    question = (
        select(
            waits.c.chat,
            (now - waits.c.oldest).label("since"),
            waits.c.waiting,
            head.c.id,
            head.c.state,
            and_(chats.c.paused_until.is_not(None), chats.c.paused_until > now),
        )
        .join(chats, chats.c.id == waits.c.chat)
        .outerjoin(head, and_(head.c.chat == waits.c.chat, leads))
    )
    return [Queue(r[0], r[1], r[2], r[3], r[4] or "", bool(r[5])) for r in tx.execute(question)]


_OPEN_ENDINGS = ("uncertain", "undeliverable", "apologised", "failed")


def _part_facts(tx: Tx, *conditions: ColumnElement[bool]) -> Sequence[Fact]:
    since: Label[float] = (now - _later(outbox.c.started_at, outbox.c.created_at)).label("since")
    question = (
        select(outbox.c.id, since, outbox.c.error, outbox.c.run, outbox.c.account)
        .outerjoin(runs, runs.c.id == outbox.c.run)
        .where(outbox.c.kind != "notice", *conditions)
        .limit(AT_MOST)
    )
    return [Fact(*row) for row in tx.execute(question)]


def uncertain_parts(tx: Tx) -> Sequence[Fact]:
    """Parts that may have arrived and that no process looks after any more."""
    unattended = or_(runs.c.ending.in_(_OPEN_ENDINGS), runs.c.id.is_(None))
    return _part_facts(tx, _DOUBTFUL, outbox.c.state == "uncertain", unattended)


def refused_parts(tx: Tx, newer: float) -> Sequence[Fact]:
    """Parts that were refused for ever within the last `newer` s."""
    unattended = or_(runs.c.ending.in_(("undeliverable", "failed")), runs.c.id.is_(None))
    recent = outbox.c.created_at > now - newer
    return _part_facts(tx, _DOUBTFUL, outbox.c.state == "refused", unattended, recent)


def unsent_words(tx: Tx, older: float) -> Sequence[Fact]:
    """Standalone messages (an operator's words, answers sent again) that are due for `older` s."""
    return _part_facts(
        tx,
        outbox.c.standalone == true(),
        is_in(outbox.c.state, PartState.PENDING),
        outbox.c.not_before <= now - older,
        outbox.c.created_at <= now - older,
    )


def delayed_parts(tx: Tx, older: float) -> Sequence[Fact]:
    """Parts older than `older` s that wait for a platform's limit, of runs or standalone."""
    replied = select(runs.c.id).where(_LIVE, runs.c.replied == true()).limit(_RUNS)
    of_runs = _delayed(older).where(outbox.c.run.in_(tx.scalars(replied).all()))
    standalone = _delayed(older).where(
        outbox.c.standalone == true(), is_in(outbox.c.state, PartState.PENDING)
    )
    rows = [*tx.execute(of_runs.limit(AT_MOST)), *tx.execute(standalone.limit(AT_MOST))]
    return [
        Fact(r[0], r[1], f"due in {r[2]:.0f} s: {r[3] or 'the platform limits this chat'}", r[4])
        for r in rows
    ]


def _delayed(older: float) -> Select[tuple[int, float, float, str, int | None]]:
    due = _later(outbox.c.not_before, chats.c.not_before)
    return (
        select(outbox.c.id, now - outbox.c.created_at, due - now, outbox.c.error, outbox.c.run)
        .join(chats, chats.c.id == outbox.c.chat)
        .where(outbox.c.state == "pending", due > now, outbox.c.created_at <= now - older)
    )


def unparsed_payloads(tx: Tx) -> Fact | None:
    """All dead letters as one fact: the newest one, since the oldest."""
    question = select(
        func.max(payloads.c.id), now - func.min(payloads.c.received_at), func.count()
    ).where(payloads.c.error.is_not(None))
    newest, since, count = tx.execute(question).one()
    if not count:
        return None
    error = tx.scalars(select(payloads.c.error).where(payloads.c.id == newest)).one()
    return Fact(newest, since, error or "", count=count)


def accounts_down(tx: Tx) -> Sequence[Fact]:
    """Accounts that can't send."""
    question = select(
        accounts.c.id, now - accounts.c.down_since, accounts.c.down_reason, accounts.c.channel
    ).where(accounts.c.down_since.is_not(None))
    return [Fact(r[0], r[1], f"{r[3]}: {r[2]}", account=r[0]) for r in tx.execute(question)]


def live_senders(tx: Tx, lease_seconds: float) -> int:
    """How many processes that work on runs may be believed alive."""
    question = select(func.count()).where(
        alive(holders.c.id, lease_seconds), holders.c.role != "web"
    )
    return int(tx.scalars(question).one())
