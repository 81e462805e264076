"""running -> ready for runs whose holder is gone, and the chats that nobody moves on.

A release is no verdict: whoever claims the run next judges it. The time since the holder's last
sign of life is not work, so it moves the agent's deadline on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import Select, and_, bindparam, case, exists, false, func, or_, select, true, update

from bot.domain.run import RunState
from storage.engine.clock import lease_clock, lease_now, now
from storage.engine.literals import is_in, is_not
from storage.engine.sets import among
from storage.engine.tx import Row, Tx
from storage.runs.moves import HEADS, PUT_BACK, SUSPECT_DEATHS
from storage.schema.tables import chats, holders, runs

AT_ONCE = 200
"""Runs that one transaction releases."""


@dataclass(frozen=True, slots=True)
class Released:
    """A run taken from a holder. `counted` says that the death is on its account."""

    run: int
    chat: int
    holder: int
    counted: bool


_conversation = func.coalesce(runs.c.moves_to, runs.c.chat)
_RUNNING = is_in(runs.c.state, RunState.RUNNING)
_GONE = and_(_RUNNING, holders.c.gone_at.is_not(None))
_silent = case(
    (holders.c.clock == lease_clock, lease_now - holders.c.renewed_at),
    else_=now - holders.c.seen_at,
)
"""Seconds since the last renewal: by the wall clock after the machine has booted anew."""

_held = (
    select(runs.c.id, runs.c.chat, runs.c.holder, holders.c.draining, _silent.label("silent"))
    .join(holders, holders.c.id == runs.c.holder)
    .where(_RUNNING)
    .order_by(runs.c.holder, runs.c.id)
)
_chats_of_dead = (
    select(chats.c.id)
    .where(
        chats.c.id.in_(
            select(_conversation).join(holders, holders.c.id == runs.c.holder).where(_GONE)
        )
    )
    .order_by(chats.c.id)
    .limit(AT_ONCE)
    .with_for_update(key_share=True, skip_locked=True)
)
_chats_of_own = (
    select(chats.c.id)
    .where(chats.c.id.in_(select(_conversation).where(_RUNNING, runs.c.holder == bindparam("of"))))
    .order_by(chats.c.id)
    .with_for_update(key_share=True)
)
_DEAD = _held.where(holders.c.gone_at.is_not(None), among(_conversation, "here")).with_for_update(
    of=runs, key_share=True, skip_locked=True
)
_DEAD_OF_CHAT = _held.where(
    holders.c.gone_at.is_not(None),
    or_(runs.c.chat == bindparam("here"), runs.c.moves_to == bindparam("here")),
).with_for_update(of=runs, key_share=True, skip_locked=True)
_OWN = _held.where(runs.c.holder == bindparam("of")).with_for_update(of=runs, key_share=True)

_counted = and_(runs.c.replied == false(), bindparam("count_it") == 1)
_deaths = runs.c.deaths + case((_counted, 1), else_=0)
_idle = now - bindparam("silent")
_RELEASE = (
    update(runs)
    .where(
        among(runs.c.id, "ids"),
        _RUNNING,
        runs.c.holder == bindparam("of"),
    )
    .values(
        **PUT_BACK
        | {
            "deaths": _deaths,
            "failures": runs.c.failures + case((and_(_counted, runs.c.lane == true()), 1), else_=0),
            "lane": and_(runs.c.replied == false(), _deaths >= SUSPECT_DEATHS),
            "not_before": now,
            "idle_since": case((runs.c.claimed_at > _idle, runs.c.claimed_at), else_=_idle),
        }
    )
    .returning(runs.c.id, runs.c.chat, runs.c.replied)
)


def release_dead(tx: Tx, chat: int | None = None) -> Sequence[Released]:
    """running -> ready, for runs whose holder is gone: those of one chat, which is locked, or
    the first AT_ONCE of all. A chat that somebody is at work on is left for the next pass.

    The death counts against a run whose agent was at work, unless the holder was draining; a
    run in the suspects' lane is charged a failure.
    """
    if chat is not None:
        return _release(tx, _DEAD_OF_CHAT, count=True, here=chat)
    here = tx.scalars(_chats_of_dead).all()
    return _release(tx, _DEAD, count=True, here=here) if here else []


def release_own(tx: Tx, holder: int, *, count: bool = False) -> Sequence[Released]:
    """running -> ready for all runs of a life that ends or has ended unnoticed: uncounted
    where that is nobody's fault (the database was away, the process leaves), else a death."""
    tx.execute(_chats_of_own, {"of": holder}).all()
    return _release(tx, _OWN, count=count, of=holder)


def _release(
    tx: Tx, which: Select[tuple[object, ...]], *, count: bool, **values: object
) -> Sequence[Released]:
    found = tx.execute(which, values).all()
    released: list[Released] = []
    for _, rows in groupby(found, key=lambda row: row.holder):
        released += _release_of(tx, tuple(rows), count=count)
    return released


def _release_of(tx: Tx, rows: Sequence[Row], *, count: bool) -> Iterable[Released]:
    """Release what one holder had."""
    first = rows[0]
    counts = count and not first.draining
    values = {
        "of": first.holder,
        "ids": [row.id for row in rows],
        "count_it": int(counts),
        "silent": max(0.0, first.silent),
    }
    return [
        Released(row.id, row.chat, first.holder, counts and not row.replied)
        for row in tx.execute(_RELEASE, values)
    ]


_head = runs.alias("head")
_STRANDED = (
    select(runs.c.chat)
    .distinct()
    .join(chats, chats.c.id == runs.c.chat)
    .where(
        is_in(runs.c.state, RunState.WAITING),
        is_not(runs.c.state, RunState.ENDED),
        or_(chats.c.paused_until.is_(None), chats.c.paused_until <= now),
        ~exists(select(1).where(_head.c.chat == runs.c.chat, is_in(_head.c.state, *HEADS))),
        ~exists(select(1).where(_head.c.moves_to == runs.c.chat, is_in(_head.c.state, *HEADS))),
    )
    .limit(bindparam("at_most"))
)


def stranded_chats(tx: Tx, limit: int) -> Sequence[int]:
    """Chats whose runs wait behind nothing: what a crash between two moves could leave."""
    return tx.scalars(_STRANDED, {"at_most": limit}).all()
