"""Reminders: words that a chat wants later. Each move is one guarded statement.

waiting  ->  done        fire, when it is due once
waiting  ->  waiting     fire, with its next time
waiting  ->  cancelled   cancel, forget
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.domain.reminders import ReminderState, Schedule
from storage.schema.tables import reminders
from storage.schema.tables.words import WORDS
from storage.statements.binds import AT_MOST, CHAT_ID, MOMENT, SECONDS
from storage.statements.chat_rows import MoveChat
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.insert import InsertOrSkip
from storage.statements.literals import is_in, is_not, word
from storage.statements.sets import among
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class StoredReminder:
    """One row that waits. `fired` counts the times that it was due before."""

    id: int
    account: int
    chat: int
    text: str
    schedule: Schedule
    fired: int


_REMINDER = Entity(StoredReminder, reminders)
_WAITING = is_in(reminders.c.state, ReminderState.WAITING)
_OF_CHAT = reminders.c.chat == CHAT_ID
_IS_REMINDER = sa.and_(_OF_CHAT, reminders.c.id == sa.bindparam("reminder_id"))

_ADD = InsertOrSkip(reminders, reminders.c.id, created_at=now)
_BY_KEY = sa.select(*_REMINDER.columns).where(reminders.c.key == sa.bindparam("reminder_key"))
_SOONEST_FIRST = (
    sa.select(*_REMINDER.columns).where(_WAITING).order_by(reminders.c.due_at, reminders.c.id)
)
_OF_CHAT_WAITING = _SOONEST_FIRST.where(_OF_CHAT)
_DUE = _SOONEST_FIRST.where(
    reminders.c.due_at <= now, among(reminders.c.account, "account_ids")
).limit(AT_MOST)
_COUNT_WAITING = sa.select(sa.func.count()).where(_OF_CHAT, _WAITING)
_CANCEL = (
    sa.update(reminders)
    .where(_IS_REMINDER, _WAITING)
    .values(state=word(ReminderState.CANCELLED), due_at=now)
)
_FIRE = (
    sa.update(reminders)
    .where(_IS_REMINDER, _WAITING, reminders.c.due_at == MOMENT)
    .values(
        state=sa.bindparam("new_state"),
        due_at=sa.bindparam("next_due"),
        fired=reminders.c.fired + 1,
    )
)
_CANCELLED = sa.case((_WAITING, word(ReminderState.CANCELLED)), else_=reminders.c.state)
_FORGET = sa.update(reminders).where(_OF_CHAT).values(state=_CANCELLED, **WORDS[reminders])
_FORGET_PAST = (
    sa.update(reminders)
    .where(
        is_not(reminders.c.state, ReminderState.WAITING),
        reminders.c.text != sa.literal_column("''"),
        reminders.c.due_at < now - SECONDS,
    )
    .values(**WORDS[reminders])
)


def add(tx: Tx, account: int, chat: int, key: str, text: str, schedule: Schedule) -> StoredReminder:
    """The reminder under this key, made if it is not there."""
    values = {
        "account": account,
        "chat": chat,
        "key": key,
        "state": ReminderState.WAITING.value,
        "text": text,
        "rule": schedule.rule,
        "zone": schedule.zone,
        "due_at": schedule.due_at,
    }
    _ADD.run(tx, values)
    stored = find(tx, key)
    assert stored is not None
    return stored


def find(tx: Tx, key: str) -> StoredReminder | None:
    """The reminder under this key, in whatever state."""
    return _REMINDER.first(tx.execute(_BY_KEY, {"reminder_key": key}))


def waiting(tx: Tx, chat: int) -> Sequence[StoredReminder]:
    """The chat's reminders that are still to come, soonest first."""
    return _REMINDER.all(tx.execute(_OF_CHAT_WAITING, {"chat_id": chat}))


def count_waiting(tx: Tx, chat: int) -> int:
    """The number of reminders of this chat that are still to come."""
    return int(tx.scalars(_COUNT_WAITING, {"chat_id": chat}).one())


def cancel(tx: Tx, chat: int, reminder: int) -> bool:
    """waiting -> cancelled. False: none of this chat waits under that number."""
    return tx.execute(_CANCEL, {"chat_id": chat, "reminder_id": reminder}).rowcount == 1


def due(tx: Tx, account_ids: Sequence[int], limit: int) -> Sequence[StoredReminder]:
    """The reminders of these accounts that are due now, oldest first."""
    values = {"account_ids": list(account_ids), "at_most": limit}
    return _REMINDER.all(tx.execute(_DUE, values))


def fire(tx: Tx, reminder: StoredReminder, following: float | None) -> bool:
    """waiting -> done, or waiting for its next time. False: another process was first, or it
    was cancelled. Guarded by the time for which it is due: each time fires once."""
    due_at = reminder.schedule.due_at
    values = {
        "chat_id": reminder.chat,
        "reminder_id": reminder.id,
        "moment": due_at,
        "new_state": ReminderState.DONE if following is None else ReminderState.WAITING,
        "next_due": due_at if following is None else following,
    }
    return tx.execute(_FIRE, values).rowcount == 1


def forget(tx: Tx, chat: int) -> None:
    """Cancel what waits and take the words out of every reminder of the chat."""
    tx.execute(_FORGET, {"chat_id": chat})


def forget_past(tx: Tx, older: float) -> None:
    """Take the words out of what was due, or cancelled, more than `older` seconds ago."""
    tx.execute(_FORGET_PAST, {"seconds": older})


merge = MoveChat(reminders, reminders.c.chat)
