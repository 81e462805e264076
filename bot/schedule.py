"""The cron calendar of reminders: the arithmetic of zones, summer time and cron rules.

APScheduler's triggers do it. Nothing is kept in a scheduler: a reminder and its time are a row.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.domain.errors import ReminderRefused
from bot.domain.reminders import Schedule
from bot.lazy_imports import lazy_imports

with lazy_imports(__name__):
    from apscheduler.triggers.cron import CronTrigger
    from apscheduler.triggers.date import DateTrigger

DAY = 86_400.0
_FURTHEST = 5 * 366 * DAY
_CLOSEST_REPEAT = 600.0
_LONGEST_QUOTE = 100
_WAIT = re.compile(r"in\s+(\d{1,6})\s*(second|minute|hour|day|week)s?")
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": DAY, "week": 7 * DAY}
_FIELDS = ("minute", "hour", "day", "month", "day_of_week")
_DAYS = re.compile(r"([a-z]+|[0-7])(-([a-z]+|[0-7]))?(,([a-z]+|[0-7])(-([a-z]+|[0-7]))?)*")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOW = (
    "write a local time like 2027-01-15 09:00, a wait like 'in 20 minutes', "
    "or five cron fields like '0 9 * * mon-fri'"
)


class CronCalendar:
    """`Calendar` by APScheduler's triggers. A time that summer time skips is taken by the
    clock from before the change; one that comes twice is the first of the two."""

    def __init__(self, zone: str = "UTC") -> None:
        self._zone = zone

    def read(self, when: str, zone: str, now: float) -> Schedule:
        place = self._place(zone)
        schedule = _schedule(" ".join(when.split()), place, now)
        if schedule.due_at <= now:
            raise ReminderRefused(f"that has passed: it is {_spell(now, place)} now")
        if schedule.due_at > now + _FURTHEST:
            raise ReminderRefused("that is more than five years ahead")
        return schedule

    def following(self, schedule: Schedule, now: float) -> float | None:
        if not schedule.rule:
            return None
        return _next(_trigger(schedule.rule, self._place(schedule.zone)), now)

    def spell(self, at: float, zone: str) -> str:
        return _spell(at, self._place(zone))

    def _place(self, zone: str) -> ZoneInfo:
        try:
            return ZoneInfo(zone or self._zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ReminderRefused(
                f"there is no time zone {_cut(zone)}; write one like Europe/Berlin"
            ) from error


def _schedule(when: str, place: ZoneInfo, now: float) -> Schedule:
    if wait := _WAIT.fullmatch(when.lower()):
        return Schedule(now + int(wait[1]) * _SECONDS[wait[2]], place.key)
    if len(when.split(" ")) == 5:
        return _recurring(when, place, now)
    try:
        local = datetime.fromisoformat(when)
    except ValueError as error:
        raise ReminderRefused(f"{_cut(when)} can't be read; {_HOW}") from error
    if re.fullmatch(r"[\d-]+", when):
        raise ReminderRefused("name the time of day too, like 2027-01-15 09:00")
    return Schedule(_next(DateTrigger(local, place), now) or 0.0, place.key)


def _recurring(rule: str, place: ZoneInfo, now: float) -> Schedule:
    trigger = _trigger(rule, place)
    first = _next(trigger, now)
    if first is None:
        raise ReminderRefused("no day fits that rule")
    second = _next(trigger, first)
    if second is not None and second - first < _CLOSEST_REPEAT:
        raise ReminderRefused("it would come more often than every ten minutes")
    return Schedule(first, place.key, rule)


def _trigger(rule: str, place: ZoneInfo) -> CronTrigger:
    fields = dict(zip(_FIELDS, rule.lower().split(" "), strict=True))
    try:
        fields["day_of_week"] = _weekdays(fields["day_of_week"])
        return CronTrigger(**fields, timezone=place)
    except (ValueError, IndexError) as error:
        raise ReminderRefused(f"{_cut(rule)} is no rule of five cron fields; {_HOW}") from error


def _cut(given: str) -> str:
    """A model's words, as they may stand in a sentence."""
    return repr(given if len(given) <= _LONGEST_QUOTE else f"{given[:_LONGEST_QUOTE]}...")


def _weekdays(field: str) -> str:
    """Cron's days by their names: there 0 and 7 are Sunday, in APScheduler 0 is Monday, and
    its ranges may not pass the end of the week."""
    # One digit a day: a range up to a billion would hold up the whole process.
    if not _DAYS.fullmatch(field):
        return field
    days: list[str] = []
    for entry in field.split(","):
        first, _, last = entry.partition("-")
        begin, end = _weekday(first), _weekday(last or first)
        days += [_WEEKDAYS[n % 7] for n in range(begin, end + (8 if end < begin else 1))]
    return ",".join(days)


def _weekday(name: str) -> int:
    return int(name) if name.isdecimal() else _WEEKDAYS.index(name)


def _next(trigger: DateTrigger | CronTrigger, now: float) -> float | None:
    """The first moment after `now`."""
    moment = datetime.fromtimestamp(now, UTC) + timedelta(microseconds=1)
    due = trigger.get_next_fire_time(None, moment)
    return None if due is None else float(due.timestamp())


def _spell(at: float, place: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(at, place):%A %Y-%m-%d %H:%M} ({place.key})"
