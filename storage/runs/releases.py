"""running -> ready for runs whose holder is gone.

A release decides nothing else: whoever claims the run next judges it. Nobody worked on it since the
holder's last sign of life, so the deadline is moved by that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.domain.decisions.retry import RETRY
from storage.holders import since_renewal
from storage.runs.rows import CONVERSATION, PUT_BACK, RUNNING
from storage.schema.tables import chats, holders, runs
from storage.statements.binds import CHAT_ID, HOLDER_ID
from storage.statements.clock import now
from storage.statements.sets import among
from storage.statements.tx import Tx

RELEASED_AT_ONCE = 200
"""The number of chats whose runs one transaction releases."""


@dataclass(frozen=True, slots=True)
class Released:
    """A run that was taken from a holder. `counted`: the death counts against it."""

    run: int
    chat: int
    holder: int
    counted: bool


_HOLDER_GONE = holders.c.gone_at.is_not(None)
_OF_HOLDER = runs.c.holder == HOLDER_ID
_held = (
    sa.select(runs.c.id, runs.c.holder, holders.c.draining)
    .join(holders, holders.c.id == runs.c.holder)
    .where(RUNNING)
    .order_by(runs.c.holder, runs.c.id)  # as the index of running runs has them
)
_OWN = _held.where(_OF_HOLDER).with_for_update(of=runs, key_share=True)
_DEAD = _held.where(_HOLDER_GONE, among(CONVERSATION, "chat_ids")).with_for_update(
    of=runs, key_share=True, skip_locked=True
)
_DEAD_OF_CHAT = _held.where(
    _HOLDER_GONE, sa.or_(runs.c.chat == CHAT_ID, runs.c.moves_to == CHAT_ID)
).with_for_update(of=runs, key_share=True, skip_locked=True)

_lock_chats = sa.select(chats.c.id).order_by(chats.c.id)
_LOCK_CHATS_OF_DEAD = (
    _lock_chats.where(
        chats.c.id.in_(
            sa.select(CONVERSATION)
            .join(holders, holders.c.id == runs.c.holder)
            .where(RUNNING, _HOLDER_GONE)
        )
    )
    .limit(RELEASED_AT_ONCE)
    .with_for_update(key_share=True, skip_locked=True)
)
_LOCK_CHATS_OF_OWN = _lock_chats.where(
    chats.c.id.in_(sa.select(CONVERSATION).where(RUNNING, _OF_HOLDER))
).with_for_update(key_share=True)

_of_holder = holders.c.id == runs.c.holder
_last_sign = (
    sa.select(sa.case((since_renewal > 0.0, now - since_renewal), else_=now))
    .where(_of_holder)
    .correlate(runs)
    .scalar_subquery()
)
_counted = sa.and_(
    sa.bindparam("counts", type_=sa.Integer) == 1,
    runs.c.replied == sa.false(),
    sa.exists(sa.select(1).where(_of_holder, holders.c.draining == sa.false())).correlate(runs),
)
_deaths = runs.c.deaths + sa.case((_counted, 1), else_=0)
_charged = sa.and_(_counted, runs.c.quarantined == sa.true())
_RELEASE = (
    sa.update(runs)
    .where(among(runs.c.id, "run_ids"), RUNNING)
    .values(
        **PUT_BACK
        | {
            "deaths": _deaths,
            "failures": runs.c.failures + sa.case((_charged, 1), else_=0),
            "quarantined": sa.and_(runs.c.replied == sa.false(), _deaths >= RETRY.suspect_after),
            "not_before": now,
            "idle_since": sa.case(
                (runs.c.claimed_at > _last_sign, runs.c.claimed_at), else_=_last_sign
            ),
        }
    )
    .returning(runs.c.id, runs.c.chat, runs.c.replied)
)


def release_dead(tx: Tx, chat: int | None = None) -> Sequence[Released]:
    """running -> ready, for runs whose holder is gone: those of one chat, which is locked, or of
    the first RELEASED_AT_ONCE chats. Chats that are locked are left for the next pass.

    The death counts against a run whose reply was not stored, unless the holder was draining. A
    run in quarantine is charged a failure as well.
    """
    if chat is not None:
        found = tx.execute(_DEAD_OF_CHAT, {"chat_id": chat}).all()
    else:
        locked = tx.scalars(_LOCK_CHATS_OF_DEAD).all()
        found = tx.execute(_DEAD, {"chat_ids": locked}).all() if locked else []
    return _release(tx, found, count=True)


def lock_chats_of(tx: Tx, holder: int) -> None:
    """Lock the chats of all runs of this holder: moves that are under way there end first, and no
    further ones begin."""
    tx.execute(_LOCK_CHATS_OF_OWN, {"holder_id": holder}).all()


def release_own(tx: Tx, holder: int, *, count: bool = False) -> Sequence[Released]:
    """running -> ready, for all runs of a session of our own that ends or was lost. With `count` it
    counts as a death; without, it is nobody's fault (a shutdown, a database that was away)."""
    lock_chats_of(tx, holder)
    return _release(tx, tx.execute(_OWN, {"holder_id": holder}).all(), count=count)


def _release(tx: Tx, found: Sequence[Any], *, count: bool) -> Sequence[Released]:
    """Release rows of `_held`, which are locked."""
    held = {row.id: row for row in found}
    if not held:
        return []
    values = {"run_ids": list(held), "counts": int(count)}
    return [
        Released(run, chat, held[run].holder, count and not replied and not held[run].draining)
        for run, chat, replied in tx.execute(_RELEASE, values)
    ]
