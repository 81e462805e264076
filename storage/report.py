"""Read-only questions, for operators and for those who wait. Nothing here moves a row."""

from __future__ import annotations

from sqlalchemy import Connection, exists, or_, select, true

from storage.tables import outbox, runs


def pending_in_account(tx: Connection, account: int) -> bool:
    """Whether any run or loose message of this account is not at its end."""
    live = exists(select(1).where(runs.c.account == account, runs.c.state != "ended"))
    loose = exists(
        select(1).where(
            outbox.c.account == account,
            outbox.c.loose == true(),
            outbox.c.state.in_(("pending", "sending")),
        )
    )
    return bool(tx.scalar(select(or_(live, loose))))
