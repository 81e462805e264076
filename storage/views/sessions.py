"""Sessions that are over before their time: signed out, or of a guest who became a user."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from bot.domain.message import Address
from storage.schema.tables import claims, ended_sessions
from storage.statements.binds import ACCOUNT_ID
from storage.statements.sets import Rows
from storage.statements.tx import Tx

_asked = Rows("asked", address=sa.Text(), session=sa.Text())
_CLAIMED = sa.exists(
    sa.select(1).where(claims.c.account == ACCOUNT_ID, claims.c.guest == _asked.c.address)
)
_ENDED = sa.exists(sa.select(1).where(ended_sessions.c.session == _asked.c.session))
_OVER = sa.select(_asked.c.session).where(sa.or_(_CLAIMED, _ENDED))


def over(tx: Tx, account: int, sessions: Sequence[tuple[Address, str]]) -> frozenset[str]:
    """Those of these sessions, given with the addresses that they open, that are over."""
    rows = _asked.of((address.chat, session) for address, session in sessions)
    return frozenset(tx.scalars(_OVER, rows | {"account_id": account}))


_IS_ENDED = sa.select(
    sa.exists(
        sa.select(1).where(ended_sessions.c.session == sa.bindparam("session_id", type_=sa.Text))
    )
)


def is_ended(tx: Tx, session: str) -> bool:
    """Tell whether somebody signed out of this session."""
    return bool(tx.scalar(_IS_ENDED, {"session_id": session}))
