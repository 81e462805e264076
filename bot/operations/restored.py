"""A database that came from a backup: nothing that was open then is done twice.

What was open when the backup was made was most likely answered afterwards, from the database that
is lost, and nobody can tell. So it ends as uncertain, in silence: nothing of it is worked on or
sent without an operator's word, `stuck` lists it, and its chats go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from bot.domain.ending import Cause, Close, Ending
from bot.domain.errors import ReminderRefused
from bot.domain.reminders import Calendar
from storage import accounts, audit_log, journal, outbox, reminders, retention, runs
from storage.chats import requests
from storage.statements import clock
from storage.statements.tx import Tx

_WHO = "restored"
_AT_ONCE = 100


def _spelled(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True, slots=True)
class Settled:
    """The counts of all that was open in a backup, made at `made_at`: turns, messages of ours that
    may have left since, and reminders that were due since."""

    made_at: float
    runs: int
    parts: int
    reminders: int

    @property
    def says(self) -> str:
        """The whole in one sentence."""
        came = f"this database came from a backup of {_spelled(self.made_at)}"
        if not (self.runs or self.parts or self.reminders):
            return f"{came}, in which nothing was open"
        return (
            f"{came}; {self.runs} turn(s), {self.parts} message(s) of ours and {self.reminders} "
            "reminder(s) were open then and may have been done since: none is done again without "
            "your word (answerback stuck)"
        )


def settle(tx: Tx, calendar: Calendar) -> Settled | None:
    """Settle, once, that the database came from a backup. None: it did not, or that is settled.
    Nobody works on it yet."""
    made_at = retention.restored_from(tx)
    if made_at is None or not retention.settle_restored(tx):
        return None
    why = f"it may have been done since the backup of {_spelled(made_at)} was made"
    parts = outbox.doubt_all(tx, why)
    ended = runs.end_all(tx, Close(Ending.UNCERTAIN, Cause.UNCONFIRMED, why))
    for run, chat in ended.items():
        audit_log.note(tx, _WHO, "ended uncertain", why, run=run, chat=chat)
    known = accounts.listed(tx)
    passed = _pass_reminders(tx, calendar, [account.id for account in known], why)
    for account in known:
        if account.catchup_mark is not None:
            # What people wrote before now may have been answered.
            accounts.move_mark(tx, account.id, clock.read(tx))
    requests.drop_exports(tx)
    journal.leave_gap(tx)
    settled = Settled(made_at, len(ended), parts, passed)
    audit_log.note(tx, _WHO, "settled", settled.says)
    return settled


def _pass_reminders(tx: Tx, calendar: Calendar, known: list[int], why: str) -> int:
    """Pass over what was due before now: it may have been told. Returns how many."""
    passed = 0
    while due := reminders.due(tx, known, _AT_ONCE):
        for reminder in due:
            try:
                following = calendar.following(reminder.schedule, clock.read(tx))
            except ReminderRefused:
                following = None
            reminders.fire(tx, reminder, following)
            audit_log.note(tx, _WHO, "reminder passed over", why, chat=reminder.chat)
            passed += 1
    return passed
