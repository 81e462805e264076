"""Sessions that were signed out before their tokens ran out."""

from __future__ import annotations

import sqlalchemy as sa

from storage.schema.tables import ended_sessions
from storage.statements.clock import now
from storage.statements.insert import InsertOrSkip
from storage.statements.tx import Tx

_END = InsertOrSkip(ended_sessions, ended_sessions.c.session)
_DROP_PAST = sa.delete(ended_sessions).where(ended_sessions.c.until < now)


def end(tx: Tx, session: str, until: float) -> None:
    """Refuse this session from now on; its token runs out at `until`. Those that have run out
    are forgotten."""
    tx.later(_DROP_PAST)
    _END.run(tx, {"session": session, "until": until})
