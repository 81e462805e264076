"""Standalone parts: notices, operators' words, and parts sent again after their run ended.

Each is claimed by itself, pending -> sending, in the order of its chat and one at a time there.
A dead holder's send that no run looks after becomes uncertain.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from bot.domain.delivery import PartState
from bot.domain.run import RunState
from storage import holders as holder_rows
from storage.outbox.moves import BEGUN
from storage.outbox.rows import IS_PART, PART, PENDING, STANDALONE, Part
from storage.schema.tables import Watched, accounts, chats, holders, outbox, runs
from storage.statements.binds import ACCOUNT_ID, AT_MOST, HOLDER_ID, LEASE_SECONDS, WAIT
from storage.statements.clock import now
from storage.statements.literals import is_in, word
from storage.statements.tx import Tx

_IS_DUE = is_in(outbox.c.watched, Watched.DUE)
_other = outbox.alias("other")
_another = sa.select(1).where(_other.c.chat == outbox.c.chat)
_EARLIER, _LEAVING, _OF_ITS_RUN = (
    sa.exists(found).correlate(outbox)
    for found in (
        _another.where(is_in(_other.c.watched, Watched.DUE), _other.c.id < outbox.c.id),
        _another.where(is_in(_other.c.watched, Watched.LEAVING)),
        sa.select(1)
        .join(_other, _other.c.run == runs.c.id)
        .where(
            runs.c.chat == outbox.c.chat,
            is_in(runs.c.state, RunState.READY, RunState.RUNNING),
            is_in(_other.c.state, PartState.SENDING),
        ),
    )
)
"""The parts of its chat that a part waits behind: one that came before, one that is being sent."""
_DUE = (
    sa.select(*PART.columns)
    .join(chats, chats.c.id == outbox.c.chat)
    .where(
        _IS_DUE,
        outbox.c.not_before <= now,
        chats.c.not_before <= now,
        outbox.c.account == ACCOUNT_ID,
        sa.exists(sa.select(1).where(accounts.c.id == ACCOUNT_ID, accounts.c.down_since.is_(None))),
        ~_EARLIER,
        ~_LEAVING,
        ~_OF_ITS_RUN,
    )
    .order_by(outbox.c.not_before, outbox.c.id)
    .limit(AT_MOST)
)


def due(tx: Tx, account_ids: Sequence[int], limit: int) -> Sequence[Part]:
    """Standalone parts that may go now, of those of the accounts that can send: due, not behind a
    part of their chat that is on its way or came before, in a chat that the platform does not
    limit."""
    # One account at a time: then the index has its parts in the order in which they are due.
    found = [
        part
        for account in account_ids
        for part in PART.all(tx.execute(_DUE, {"account_id": account, "at_most": limit}))
    ]
    return sorted(found, key=lambda part: (part.not_before, part.id))[:limit]


_CLAIM = (
    sa.update(outbox)
    .where(IS_PART, STANDALONE, PENDING, holder_rows.alive(HOLDER_ID, LEASE_SECONDS))
    .values(**BEGUN)
    .returning(*PART.columns)
)


def claim(tx: Tx, part: int, holder: int, lease_seconds: float) -> Part | None:
    """pending -> sending, for a standalone part. None: somebody else has it."""
    values = {"part_id": part, "holder_id": holder, "lease_seconds": lease_seconds}
    return PART.first(tx.execute(_CLAIM, values))


_PUT_OFF = sa.update(outbox).where(IS_PART, STANDALONE, PENDING).values(not_before=now + WAIT)


def put_off(tx: Tx, part: int, wait: float) -> None:
    """Make a pending standalone part due in `wait` seconds."""
    tx.execute(_PUT_OFF, {"part_id": part, "wait": wait})


_HOLDER_GONE = sa.exists(
    sa.select(1).where(holders.c.id == outbox.c.holder, holders.c.gone_at.is_not(None))
).correlate(outbox)
_DOUBT_ORPHANS = (
    sa.update(outbox)
    .where(is_in(outbox.c.watched, Watched.LEAVING), _HOLDER_GONE)
    .values(
        state=word(PartState.UNCERTAIN),
        holder=None,
        error="the process died while it was being sent",
    )
    .returning(outbox.c.id)
)


def doubt_orphans(tx: Tx) -> Sequence[int]:
    """sending -> uncertain, for parts that a dead holder left and no run looks after."""
    return tx.scalars(_DOUBT_ORPHANS).all()


_DOUBTFUL = (
    sa.select(*PART.columns)
    .where(
        is_in(outbox.c.watched, Watched.UNSURE),
        outbox.c.account == ACCOUNT_ID,
        outbox.c.looks < sa.bindparam("looks_made"),
    )
    .order_by(outbox.c.looks, outbox.c.id)
    .limit(AT_MOST)
)


def doubtful(tx: Tx, account: int, looks: int, limit: int) -> Sequence[Part]:
    """Standalone parts of this account that may have arrived and were looked for fewer than `looks`
    times, those that were looked for least first."""
    values = {"account_id": account, "looks_made": looks, "at_most": limit}
    return PART.all(tx.execute(_DOUBTFUL, values))
