"""The arithmetic of reminders: zones, summer time, rules that recur."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from bot.domain.errors import ReminderRefused
from bot.schedule import CronCalendar

LONG = "x" * 10_000
NOW = datetime(2027, 3, 27, 12, tzinfo=UTC).timestamp()
"""The day before Berlin's clocks go forward."""


@pytest.mark.parametrize(
    ("when", "zone", "due"),
    [
        ("2027-04-01 09:00", "", "Thursday 2027-04-01 09:00 (UTC)"),
        ("2027-04-01 09:00", "Europe/Berlin", "Thursday 2027-04-01 09:00 (Europe/Berlin)"),
        ("2027-04-01T09:00:00", "Asia/Kolkata", "Thursday 2027-04-01 09:00 (Asia/Kolkata)"),
        ("2027-04-01T09:00+05:00", "Europe/Berlin", "Thursday 2027-04-01 06:00 (Europe/Berlin)"),
        ("2027-04-01T09:00Z", "Europe/Berlin", "Thursday 2027-04-01 11:00 (Europe/Berlin)"),
        ("2027-03-28 02:30", "Europe/Berlin", "Sunday 2027-03-28 03:30 (Europe/Berlin)"),
        ("2027-10-31 02:30", "Europe/Berlin", "Sunday 2027-10-31 02:30 (Europe/Berlin)"),
        ("in 20 minutes", "", "Saturday 2027-03-27 12:20 (UTC)"),
        ("In 1 Hour", "", "Saturday 2027-03-27 13:00 (UTC)"),
        ("in 24 hours", "Europe/Berlin", "Sunday 2027-03-28 14:00 (Europe/Berlin)"),
        ("0 9 * * mon-fri", "Europe/Berlin", "Monday 2027-03-29 09:00 (Europe/Berlin)"),
        ("0 9 * * 1-5", "Europe/Berlin", "Monday 2027-03-29 09:00 (Europe/Berlin)"),
        ("0 9 * * 0", "", "Sunday 2027-03-28 09:00 (UTC)"),
        ("0 9 * * 7", "", "Sunday 2027-03-28 09:00 (UTC)"),
        ("0 9 * * fri-mon", "", "Sunday 2027-03-28 09:00 (UTC)"),
        ("0 9 29 2 *", "", "Tuesday 2028-02-29 09:00 (UTC)"),
        ("30 2 * * *", "Europe/Berlin", "Sunday 2027-03-28 03:30 (Europe/Berlin)"),
    ],
)
def test_when_it_is_due(when: str, zone: str, due: str) -> None:
    calendar = CronCalendar()
    schedule = calendar.read(when, zone, NOW)
    assert calendar.spell(schedule.due_at, schedule.zone) == due


def test_a_daily_rule_keeps_its_hour_over_the_change_of_clocks() -> None:
    calendar = CronCalendar()
    schedule = calendar.read("0 9 * * *", "Europe/Berlin", NOW - 86_400)
    times = [schedule.due_at]
    while len(times) < 4:
        following = calendar.following(schedule, times[-1])
        assert following is not None
        times.append(following)
    hours = [calendar.spell(moment, "Europe/Berlin").split()[2] for moment in times]
    assert hours == ["09:00"] * 4
    assert {round((b - a) / 3600) for a, b in pairwise(times)} == {23, 24}


def test_what_was_missed_is_not_made_up_for_time_by_time() -> None:
    calendar = CronCalendar()
    schedule = calendar.read("0 * * * *", "", NOW)
    following = calendar.following(schedule, NOW + 3.5 * 3600)
    assert following == NOW + 4 * 3600


def test_what_is_due_once_has_nothing_after_it() -> None:
    calendar = CronCalendar()
    assert calendar.following(calendar.read("in 1 minute", "", NOW), NOW) is None


@pytest.mark.parametrize(
    ("when", "zone", "said"),
    [
        ("2020-01-01 10:00", "", "that has passed: it is Saturday 2027-03-27 12:00"),
        ("2099-01-01 10:00", "", "more than five years ahead"),
        ("in 999999 weeks", "", "more than five years ahead"),
        ("2027-05-01", "", "name the time of day"),
        ("tomorrow", "", "can't be read"),
        ("", "", "can't be read"),
        ("2027-04-01 09:00", "Mars/Olympus", "there is no time zone 'Mars/Olympus'"),
        ("2027-04-01 09:00", "../../etc/passwd", "there is no time zone"),
        ("* * * * *", "", "more often than every ten minutes"),
        ("*/5 * * * *", "", "more often than every ten minutes"),
        ("0 9 31 2 *", "", "no day fits"),
        ("0 9 * * 9", "", "no rule of five cron fields"),
        ("a b c d e", "", "no rule of five cron fields"),
        ("99 9 * * *", "", "no rule of five cron fields"),
    ],
)
def test_what_can_not_be_meant_is_said(when: str, zone: str, said: str) -> None:
    with pytest.raises(ReminderRefused) as refused:
        CronCalendar().read(when, zone, NOW)
    assert said in str(refused.value)


@pytest.mark.parametrize("given", [(LONG, ""), ("in 1 hour", LONG), (f"{LONG} * * * *", "")])
def test_what_a_model_wrote_at_length_is_quoted_in_short(given: tuple[str, str]) -> None:
    with pytest.raises(ReminderRefused) as refused:
        CronCalendar().read(*given, NOW)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("days", ["1-77777777777", "7777777", "77-1", "8", "1-8"])
def test_a_range_of_days_ends_with_the_week(days: str) -> None:
    with pytest.raises(ReminderRefused):
        CronCalendar().read(f"0 9 * * {days}", "", NOW)
