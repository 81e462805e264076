"""Reminders: kept as rows of their own, and turned into messages when they are due.

A reminder that is due becomes a message of its chat (kind `reminder`) with a run of its own,
in the transaction that moves the reminder on: whatever the number of processes, once. What
was missed while nobody ran is told once, late. Until then it is no run: a run that is due in
a month would be its chat's head, and everything that the person writes would wait behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.delivery.context import WorkerContext
from bot.domain.decisions.admission import Unanswered, invited
from bot.domain.errors import ReminderRefused
from bot.domain.message import clean
from bot.domain.reminders import Reminder
from bot.domain.run import Run
from bot.leases.runtime import Runtime
from bot.runs.create import create_run
from storage import audit_log, chats, inbox, reminders, runs
from storage.chats import Chat
from storage.notify import READY
from storage.reminders import StoredReminder
from storage.statements import clock
from storage.statements.tx import Tx

MOST_WAITING = 50
"""Reminders that one chat may have before it."""
LONGEST_TEXT = 1000
_AT_ONCE = 100
_WHO = "reminder"


class ChatReminders:
    """The reminders of one chat, for the agent that talks there."""

    def __init__(self, ctx: WorkerContext, run: Run) -> None:
        self._ctx = ctx
        self._run = run

    async def add(self, when: str, text: str, *, key: str, zone: str = "") -> Reminder:
        text = clean(text).strip()
        if not text or len(text) > LONGEST_TEXT:
            raise ReminderRefused(f"a reminder's text has 1 to {LONGEST_TEXT} characters")
        rt = self._ctx.rt
        named = f"{self._run.id}:{key}"
        stored = await self._ctx.persist(_add, rt, self._run, named, text, when=when, zone=zone)
        return _told(rt, stored)

    async def waiting(self) -> Sequence[Reminder]:
        rt = self._ctx.rt
        found = await rt.db.read(reminders.waiting, self._run.chat)
        return [_told(rt, stored) for stored in found]

    async def cancel(self, number: int) -> bool:
        return await self._ctx.persist(_cancel, self._run, number)

    def now(self, zone: str = "") -> str:
        return self._ctx.rt.calendar.spell(self._ctx.rt.clock.wall(), zone)


def _add(
    tx: Tx, rt: Runtime, run: Run, key: str, text: str, *, when: str, zone: str
) -> StoredReminder:
    """The reminder under this key. What `when` meant is settled when it is made: asked again
    after a crash, "in 20 minutes" still counts from then. Raises StaleLease."""
    chats.lock(tx, run.chat)
    runs.hold(tx, run.claim)
    found = reminders.find(tx, key)
    if found is not None:
        return found
    if reminders.count_waiting(tx, run.chat) >= MOST_WAITING:
        raise ReminderRefused(f"this chat has {MOST_WAITING} reminders already; cancel one first")
    schedule = rt.calendar.read(when, zone, clock.read(tx))
    return reminders.add(tx, run.account, run.chat, key, text, schedule)


def _cancel(tx: Tx, run: Run, number: int) -> bool:
    runs.hold(tx, run.claim)
    return reminders.cancel(tx, run.chat, number)


def _told(rt: Runtime, stored: StoredReminder) -> Reminder:
    due = rt.calendar.spell(stored.schedule.due_at, stored.schedule.zone)
    return Reminder(stored.id, stored.text, due, stored.schedule)


async def fire_due(rt: Runtime) -> int:
    """Turn what is due on our accounts into messages; returns how many. Any process may do
    so at any time. Raises DatabaseUnavailable."""
    due = await rt.db.read(reminders.due, rt.mine, _AT_ONCE)
    fired = [await rt.db.write(_fire, rt, reminder) for reminder in due]
    if any(fired):
        rt.wakeups.tell(READY)
    return sum(fired)


def _fire(tx: Tx, rt: Runtime, reminder: StoredReminder) -> bool:
    """One reminder becomes a message and a run. False: another process was first, or it is
    not wanted any more."""
    chat = chats.lock(tx, reminder.chat)
    unwanted = _unwanted(tx, rt, chat)
    following = None if unwanted else _following(tx, rt, reminder)
    if not reminders.fire(tx, reminder, following):
        return False
    if unwanted is not None:
        audit_log.note(tx, _WHO, "dropped", unwanted.says, chat=chat.id)
        return False
    now, due_at = clock.read(tx), reminder.schedule.due_at
    request_id = f"reminder-{reminder.id}-{reminder.fired + 1}"
    message = inbox.store_reminder(tx, chat.account, chat.id, request_id, reminder.text, due_at)
    run = create_run(tx, chat, request_id, order_at=None)
    inbox.assign(tx, message, run.id)
    audit_log.note(tx, _WHO, "due", f"{now - due_at:.0f} s late", run=run.id, chat=chat.id)
    return True


def _unwanted(tx: Tx, rt: Runtime, chat: Chat) -> Unanswered | None:
    """The reason for which nobody in this chat is reminded any more; None if somebody is."""
    if chat.opted_out_at is not None:
        return Unanswered.OPTED_OUT
    allowed = rt.terms.intake.allowed
    if not allowed:
        return None
    names = chats.names(tx, chat.id) | inbox.names_in(tx, chat.id, _AT_ONCE)
    return None if invited(names, allowed) else Unanswered.NOT_ALLOWED


def _following(tx: Tx, rt: Runtime, reminder: StoredReminder) -> float | None:
    """The next time after now: times that were missed meanwhile fall together into this one."""
    try:
        return rt.calendar.following(reminder.schedule, clock.read(tx))
    except ReminderRefused as error:
        audit_log.note(tx, _WHO, "ends", str(error), chat=reminder.chat)
        return None
