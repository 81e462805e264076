"""Reminders: words that a chat gets later, as a turn of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class ReminderState(StrEnum):
    """The states of a reminder: `waiting` becomes `done` when it is due (one that recurs waits
    for its next time instead), or `cancelled` by the person. Neither moves any more."""

    WAITING = "waiting"
    DONE = "done"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A due time: epoch seconds, the IANA zone it was meant in, and the rule of
    five cron fields by which it comes again (empty: it does not)."""

    due_at: float
    zone: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Reminder:
    """A reminder that waits."""

    number: int
    """The number that `cancel` takes."""
    text: str
    """The words to be reminded of."""
    due: str
    """Its time in words, in its zone."""
    schedule: Schedule
    """Its time for programs: `due_at` in epoch seconds, `zone`, and `rule` where it comes again."""


class Calendar(Protocol):
    """The arithmetic of clocks on walls: zones, summer time, rules that recur."""

    def read(self, when: str, zone: str, now: float) -> Schedule:
        """The meaning of `when`. Raises ReminderRefused with words for the one who asked."""

    def following(self, schedule: Schedule, now: float) -> float | None:
        """The next due time after `now`, in epoch seconds; None when there is none."""

    def spell(self, at: float, zone: str) -> str:
        """A moment in words, as the clocks of `zone` show it."""


class Reminders(Protocol):
    """The reminders of a turn's chat."""

    async def add(self, when: str, text: str, *, key: str, zone: str = "") -> Reminder:
        """Remind the chat of `text`. One `key` makes one reminder in a turn, however often it
        is asked for.

        `when` is a local time (`2027-01-15 09:00`), a wait (`in 20 minutes`) or a rule of
        five cron fields (`0 9 * * mon-fri`). Raises ReminderRefused.
        """

    async def waiting(self) -> Sequence[Reminder]:
        """Those still to come, soonest first."""

    async def cancel(self, number: int) -> bool:
        """Never remind of it. False: no reminder of this chat waits under that number."""

    def now(self, zone: str = "") -> str:
        """This moment in words. Raises ReminderRefused for a zone that there is not."""
