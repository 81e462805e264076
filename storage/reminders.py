"""Reminders: what a chat is told later. Each move is one guarded statement.

waiting  ->  done        (fire, when it is due once)
waiting  ->  waiting     (fire, with its next time)
waiting  ->  cancelled   (cancel)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Row, func, select, update

from bot.domain.reminders import Schedule
from storage.engine.clock import now
from storage.engine.insert import insert_or_skip
from storage.schema.tables import reminders

_COLUMNS = (
    reminders.c.id,
    reminders.c.account,
    reminders.c.chat,
    reminders.c.text,
    reminders.c.rule,
    reminders.c.zone,
    reminders.c.due_at,
    reminders.c.fired,
)
_IS_WAITING = reminders.c.state == "waiting"


@dataclass(frozen=True, slots=True)
class StoredReminder:
    """One row that waits. `fired` counts the times that it was due before."""

    id: int
    account: int
    chat: int
    text: str
    schedule: Schedule
    fired: int


def _stored(row: Row) -> StoredReminder:  # type: ignore[type-arg]
    schedule = Schedule(row.due_at, row.zone, row.rule)
    return StoredReminder(row.id, row.account, row.chat, row.text, schedule, row.fired)


def add(
    tx: Connection, account: int, chat: int, key: str, text: str, schedule: Schedule
) -> StoredReminder:
    """The reminder under this key, made if it is not there."""
    values: dict[str, object] = {
        "account": account,
        "chat": chat,
        "key": key,
        "state": "waiting",
        "text": text,
        "rule": schedule.rule,
        "zone": schedule.zone,
        "due_at": schedule.due_at,
        "created_at": now,
    }
    tx.execute(insert_or_skip(tx, reminders, values))
    return _stored(tx.execute(select(*_COLUMNS).where(reminders.c.key == key)).one())


def find(tx: Connection, key: str) -> StoredReminder | None:
    """The reminder under this key, in whatever state."""
    row = tx.execute(select(*_COLUMNS).where(reminders.c.key == key)).first()
    return None if row is None else _stored(row)


def waiting(tx: Connection, chat: int) -> Sequence[StoredReminder]:
    """The chat's reminders that are still to come, soonest first."""
    question = select(*_COLUMNS).where(reminders.c.chat == chat, _IS_WAITING)
    rows = tx.execute(question.order_by(reminders.c.due_at, reminders.c.id))
    return [_stored(row) for row in rows]


def count_waiting(tx: Connection, chat: int) -> int:
    """How many reminders of this chat are still to come."""
    question = select(func.count()).where(reminders.c.chat == chat, _IS_WAITING)
    return int(tx.scalars(question).one())


def cancel(tx: Connection, chat: int, reminder: int) -> bool:
    """waiting -> cancelled. False: none of this chat waits under that number."""
    move = update(reminders).where(
        reminders.c.id == reminder, reminders.c.chat == chat, _IS_WAITING
    )
    return tx.execute(move.values(state="cancelled")).rowcount == 1


def due(tx: Connection, accounts: Sequence[int], limit: int) -> Sequence[StoredReminder]:
    """What is due now on these accounts, oldest first."""
    question = (
        select(*_COLUMNS)
        .where(_IS_WAITING, reminders.c.due_at <= now, reminders.c.account.in_(accounts))
        .order_by(reminders.c.due_at, reminders.c.id)
        .limit(limit)
    )
    return [_stored(row) for row in tx.execute(question)]


def fire(tx: Connection, reminder: StoredReminder, following: float | None) -> bool:
    """waiting -> done, or waiting for its next time. False: another process was first, or it
    was cancelled. Guarded by the time for which it is due: each time fires once."""
    again = following is not None
    move = (
        update(reminders)
        .where(
            reminders.c.id == reminder.id,
            reminders.c.chat == reminder.chat,
            _IS_WAITING,
            reminders.c.due_at == reminder.schedule.due_at,
        )
        .values(
            state="waiting" if again else "done",
            due_at=following if again else reminders.c.due_at,
            fired=reminders.c.fired + 1,
        )
    )
    return tx.execute(move).rowcount == 1
