"""What the platform's own records say that people wrote, beside what webhooks brought."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import floor

from sqlalchemy import select, update

from bot.domain.message import Inbound
from bot.domain.run import LIVE
from storage.engine import clock
from storage.engine.tx import Tx
from storage.schema.tables import accounts, inbound, runs

_AT_ONCE = 500
_SOURCE = "source"


def begin_mark(tx: Tx, account: int) -> float:
    """Where the account's next listing begins, in epoch seconds. The first one begins now, in
    whole seconds as platforms tell them: what was written before is nobody's to answer."""
    tx.execute(
        update(accounts)
        .where(accounts.c.id == account, accounts.c.catchup_mark.is_(None))
        .values(catchup_mark=floor(clock.read(tx)))
    )
    return float(tx.scalars(select(accounts.c.catchup_mark).where(accounts.c.id == account)).one())


def recorded(tx: Tx, account: int, request_ids: Sequence[str]) -> tuple[frozenset[str], float]:
    """Which of these messages are recorded, and the database's time in epoch seconds."""
    found: set[str] = set()
    for start in range(0, len(request_ids), _AT_ONCE):
        some = request_ids[start : start + _AT_ONCE]
        question = select(inbound.c.request_id).where(
            inbound.c.account == account, inbound.c.request_id.in_(some)
        )
        found.update(tx.scalars(question))
    return frozenset(found), clock.read(tx)


def tell_times(tx: Tx, account: int, times: Mapping[str, float | None]) -> int:
    """Give messages that came without the platform's time (epoch seconds, by request id) what
    its list tells, and order their runs by it if nobody has begun them. Returns how many."""
    told = 0
    known = {name: at for name, at in times.items() if at is not None}
    for row in tx.execute(
        select(inbound.c.id, inbound.c.run, inbound.c.request_id)
        .join(runs, runs.c.id == inbound.c.run)
        .where(
            inbound.c.account == account,
            inbound.c.request_id.in_(list(known)[-_AT_ONCE:]),
            inbound.c.sent_at.is_(None),
            runs.c.attempts == 0,
            runs.c.state.in_([state.value for state in LIVE]),
        )
        .order_by(inbound.c.id)
    ).all():
        at = known[row.request_id]
        tx.execute(update(inbound).where(inbound.c.id == row.id).values(sent_at=at))
        tx.execute(
            update(runs)
            .where(runs.c.id == row.run, runs.c.attempts == 0, runs.c.order_at > at)
            .values(order_at=at)
        )
        told += 1
    return told


def poorer(tx: Tx, account: int, message: Inbound) -> tuple[int, int | None] | None:
    """(message, run) of the row that only the platform's list told of, while `message` comes
    from somewhere that tells more; None for any other."""
    if _SOURCE in message.extra:
        return None
    row = tx.execute(
        select(inbound.c.id, inbound.c.run, inbound.c.extra).where(
            inbound.c.account == account, inbound.c.request_id == message.request_id
        )
    ).first()
    if row is None or _SOURCE not in json.loads(row.extra):
        return None
    return row.id, row.run


def enrich(tx: Tx, stored: int, message: Inbound) -> None:
    """Give a row that only the list told of what its webhook tells; its time stays."""
    quoted = None if message.quoted is None else json.dumps(asdict(message.quoted))
    tx.execute(
        update(inbound)
        .where(inbound.c.id == stored)
        .values(
            kind=message.kind.value,
            text=message.text,
            sender_id=message.sender.id,
            sender_name=message.sender.name,
            button=message.button,
            attachments=json.dumps([asdict(a) for a in message.attachments]),
            quoted=quoted,
            forwarded_from=message.forwarded_from,
            extra=json.dumps(message.extra),
        )
    )


def runs_after(tx: Tx, chat: int, at: float | None) -> frozenset[int]:
    """The chat's live runs for what was written after this moment (epoch seconds)."""
    if at is None:
        return frozenset()
    question = select(runs.c.id).where(
        runs.c.chat == chat,
        runs.c.state.in_([state.value for state in LIVE]),
        runs.c.order_at > at,
    )
    return frozenset(tx.scalars(question))
