"""Standalone parts: notices, operators' words, what is sent again after its run ended.

Each is claimed by itself, pending -> sending, in the order of its chat and one at a time there.
A dead holder's send that no run looks after becomes uncertain.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import (
    BigInteger,
    Connection,
    Double,
    bindparam,
    exists,
    or_,
    select,
    true,
    update,
)

from bot.domain.delivery import PartState
from storage import holders as holder_moves
from storage.engine.clock import now
from storage.engine.literals import is_in, word
from storage.outbox.moves import BEGUN, COLUMNS, Part, part_of
from storage.runs.moves import HEADS
from storage.schema.tables import accounts, chats, holders, outbox, runs

_PENDING = (outbox.c.standalone == true(), is_in(outbox.c.state, PartState.PENDING))
_busy = outbox.alias("busy")
_ON_ITS_WAY = exists(
    select(1).where(_busy.c.chat == outbox.c.chat, is_in(_busy.c.state, PartState.SENDING))
).correlate(outbox)
_earlier = outbox.alias("earlier")
_BEHIND = exists(
    select(1).where(
        _earlier.c.chat == outbox.c.chat,
        _earlier.c.id < outbox.c.id,
        _earlier.c.standalone == true(),
        is_in(_earlier.c.state, PartState.PENDING),
    )
).correlate(outbox)
_DUE = (
    select(*COLUMNS)
    .join(chats, chats.c.id == outbox.c.chat)
    .where(
        *_PENDING,
        outbox.c.not_before <= now,
        chats.c.not_before <= now,
        outbox.c.account.in_(
            select(accounts.c.id).where(
                accounts.c.id.in_(bindparam("mine", expanding=True)),
                accounts.c.down_since.is_(None),
            )
        ),
        ~_ON_ITS_WAY,
        ~_BEHIND,
    )
    .order_by(outbox.c.not_before, outbox.c.id)
    .limit(bindparam("at_most"))
)


def due(tx: Connection, mine: Sequence[int], limit: int) -> Sequence[Part]:
    """Standalone parts that may go now, of those of the accounts `mine` that can send: due, not
    behind a part of their chat that is on its way or came before, in a chat that the platform
    does not limit."""
    found = tx.execute(_DUE, {"mine": list(mine), "at_most": limit})
    return [part_of(row) for row in found]


_CLAIM = (
    update(outbox)
    .where(
        outbox.c.id == bindparam("of"),
        *_PENDING,
        holder_moves.alive(
            bindparam("me", type_=BigInteger), bindparam("lease_seconds", type_=Double)
        ),
    )
    .values(**BEGUN)
    .returning(*COLUMNS)
)


def claim(tx: Connection, part: int, holder: int, lease_seconds: float) -> Part | None:
    """pending -> sending, for a standalone part. None: somebody else has it."""
    values = {"of": part, "me": holder, "lease_seconds": lease_seconds}
    row = tx.execute(_CLAIM, values).first()
    return None if row is None else part_of(row)


_PUT_OFF = (
    update(outbox)
    .where(outbox.c.id == bindparam("of"), *_PENDING)
    .values(not_before=now + bindparam("wait"))
)


def put_off(tx: Connection, part: int, wait: float) -> None:
    """Make a pending standalone part due in `wait` seconds."""
    tx.execute(_PUT_OFF, {"of": part, "wait": wait})


_GONE = exists(
    select(1).where(holders.c.id == outbox.c.holder, holders.c.gone_at.is_not(None))
).correlate(outbox)
_OWNED = exists(select(1).where(runs.c.id == outbox.c.run, is_in(runs.c.state, *HEADS))).correlate(
    outbox
)
_DOUBT_ORPHANS = (
    update(outbox)
    .where(
        is_in(outbox.c.state, PartState.SENDING), _GONE, or_(outbox.c.standalone == true(), ~_OWNED)
    )
    .values(
        state=word(PartState.UNCERTAIN),
        holder=None,
        error="the process died while it was being sent",
    )
    .returning(outbox.c.id)
)


def doubt_orphans(tx: Connection) -> Sequence[int]:
    """sending -> uncertain, for parts that a dead holder left and no run looks after."""
    return tx.scalars(_DOUBT_ORPHANS).all()


_DOUBTFUL = (
    select(*COLUMNS)
    .where(
        is_in(outbox.c.state, PartState.UNCERTAIN),
        outbox.c.standalone == true(),
        outbox.c.account == bindparam("of"),
        outbox.c.looks < bindparam("looks_made"),
    )
    .order_by(outbox.c.id)
    .limit(bindparam("at_most"))
)


def doubtful(tx: Connection, account: int, looks: int, limit: int) -> Sequence[Part]:
    """Standalone parts of this account that may have arrived and were looked for fewer than `looks`
    times, oldest first."""
    found = tx.execute(_DOUBTFUL, {"of": account, "looks_made": looks, "at_most": limit})
    return [part_of(row) for row in found]
