"""Statuses that come before the answer which names their message as ours.

One that carries no name of ours is nobody's until that answer is recorded. It is kept for a while,
once however often it is delivered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from bot.domain.delivery import DeliveryStatus, PartState
from storage.schema.tables import early_statuses, outbox, receipts
from storage.statements.clock import now
from storage.statements.insert import InsertOrSkip
from storage.statements.sets import among
from storage.statements.tx import Tx

_FOR = 600.0
"""Seconds; no answer to a send is waited for so long."""
_AT_ONCE = 100

_KEEP = InsertOrSkip(early_statuses, early_statuses.c.account, at=now)
_OLD = early_statuses.c.at < now - _FOR
_FOUND = (
    sa.select(
        early_statuses.c.account,
        early_statuses.c.receipt,
        early_statuses.c.provider_status,
        early_statuses.c.state,
        early_statuses.c.code,
    )
    .join(receipts, receipts.c.receipt == early_statuses.c.receipt)
    .join(
        outbox,
        sa.and_(
            outbox.c.id == receipts.c.outbox,
            outbox.c.account == early_statuses.c.account,
            outbox.c.receipt == receipts.c.receipt,
        ),
    )
    .where(~_OLD, among(early_statuses.c.account, "account_ids"))
    .order_by(early_statuses.c.at, early_statuses.c.provider_status)
    .limit(sa.literal_column(str(_AT_ONCE)))
)
_ANY_OLD = sa.select(sa.exists(sa.select(1).select_from(early_statuses).where(_OLD)))
_DROP_OLD = sa.delete(early_statuses).where(_OLD)
_DROP = sa.delete(early_statuses).where(
    early_statuses.c.account == sa.bindparam("account_id"),
    early_statuses.c.receipt == sa.bindparam("its_receipt"),
    early_statuses.c.provider_status == sa.bindparam("its_status"),
)


class EarlyStatus(NamedTuple):
    """A status that was kept, and the account that was told of it."""

    account: int
    status: DeliveryStatus


def keep(tx: Tx, account: int, status: DeliveryStatus) -> None:
    """Keep a status of a message that is nobody's as yet."""
    _KEEP.run(
        tx,
        {
            "account": account,
            "receipt": status.receipt,
            "provider_status": status.provider_status,
            "state": None if status.state is None else status.state.value,
            "code": status.code,
        },
    )


def matched(tx: Tx, accounts: Sequence[int]) -> tuple[Sequence[EarlyStatus], bool]:
    """Some of the statuses that were kept whose message is one of ours by now, and whether there
    are any that nobody waits for any more."""
    found = [
        EarlyStatus(
            row.account,
            DeliveryStatus(
                row.receipt,
                None if row.state is None else PartState(row.state),
                row.provider_status,
                code=row.code,
            ),
        )
        for row in tx.execute(_FOUND, {"account_ids": list(accounts)})
    ]
    return found, bool(tx.scalar(_ANY_OLD))


def drop(tx: Tx, done: Sequence[EarlyStatus]) -> None:
    """Forget these statuses, which were recorded, and those that nobody waits for any more."""
    for account, status in done:
        its = {"its_receipt": status.receipt, "its_status": status.provider_status}
        tx.execute(_DROP, {"account_id": account, **its})
    tx.execute(_DROP_OLD)
