"""The lacks of a chat's journal, and the order in which two journals become one."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.clients.journal import EventKind, MessageFacts, Shown, interleaved, news, told_as
from bot.domain.ending import Ending, TurnStatus
from bot.domain.reply import PartKind
from bot.domain.run import RunState


def facts(
    state: RunState | None, shown: Shown | None = None, ending: Ending | None = None
) -> MessageFacts:
    if state is RunState.ENDED:
        ending = ending or Ending.ANSWERED
    return MessageFacts(7, state, ending, shown)


def kinds(of: MessageFacts) -> list[EventKind]:
    return [event.kind for event in news(of)]


def test_a_new_message_is_accepted_first_whatever_has_become_of_it_by_then() -> None:
    accepted = EventKind.ACCEPTED
    assert kinds(facts(RunState.WAITING)) == [accepted]
    assert kinds(facts(RunState.READY)) == [accepted]
    assert kinds(facts(RunState.RUNNING)) == [accepted, EventKind.WORKING]
    assert kinds(facts(RunState.ENDED)) == [accepted, EventKind.ENDED]
    assert kinds(facts(None)) == [accepted, EventKind.ENDED]


@pytest.mark.parametrize("ending", Ending)
def test_every_ending_is_told_with_its_status(ending: Ending) -> None:
    [event] = news(facts(RunState.ENDED, Shown.WORKING, ending))
    withdrawn = ending.rule.status is TurnStatus.WITHDRAWN
    assert event.kind is (EventKind.WITHDRAWN if withdrawn else EventKind.ENDED)
    assert (event.status, event.ending) == (ending.rule.status, ending)


def test_what_is_shown_is_not_shown_again() -> None:
    for state in (None, *RunState):
        shown = facts(state).now
        assert kinds(facts(state, shown)) == []


def test_a_run_that_was_given_back_is_still_worked_on() -> None:
    assert kinds(facts(RunState.READY, Shown.WORKING)) == []


def test_a_message_that_is_tried_again_is_no_new_one() -> None:
    [event] = news(facts(RunState.READY, Shown.OVER))
    assert (event.kind, event.status) == (EventKind.ACCEPTED, TurnStatus.PENDING)
    [first] = news(facts(RunState.READY))
    assert first.status is None
    assert kinds(facts(RunState.RUNNING, Shown.OVER)) == [EventKind.WORKING]


def test_whatever_was_shown_and_is_true_now_leads_to_what_is_shown_then() -> None:
    last = {
        EventKind.ACCEPTED: Shown.ACCEPTED,
        EventKind.WORKING: Shown.WORKING,
        EventKind.ENDED: Shown.OVER,
        EventKind.WITHDRAWN: Shown.OVER,
    }
    for state, before in product((None, *RunState), (None, *Shown)):
        it = facts(state, before)
        shown = [before, *(last[event.kind] for event in news(it))][-1]
        held_back = (Shown.WORKING, Shown.ACCEPTED)
        assert shown is it.now or (shown, it.now) == held_back


def test_a_notice_that_it_takes_longer_has_a_kind_of_its_own() -> None:
    assert told_as(PartKind.NOTICE, still_working=True) is EventKind.STILL_WORKING
    assert told_as(PartKind.NOTICE, still_working=False) is EventKind.NOTICE
    for kind in (PartKind.REPLY, PartKind.APOLOGY, PartKind.OPERATOR):
        assert told_as(kind, still_working=False) is EventKind.MESSAGE


_journal = st.lists(st.floats(0, 100, allow_nan=False), max_size=8)


@given(st.lists(_journal, max_size=3))
def test_journals_become_one_by_time_and_never_against_the_order_of_one(
    times: list[list[float]],
) -> None:
    journals = [
        [(at, 100 * place + number) for number, at in enumerate(of)]
        for place, of in enumerate(times)
    ]
    merged = list(interleaved(journals))
    assert sorted(merged) == sorted(row for journal in journals for _, row in journal)
    for journal in journals:
        rows = [row for _, row in journal]
        assert [row for row in merged if row in rows] == rows


def test_of_two_journals_whose_clocks_agree_the_earlier_event_comes_first() -> None:
    assert interleaved([[(1.0, 10), (4.0, 11)], [(2.0, 20), (3.0, 21)]]) == [10, 20, 21, 11]
