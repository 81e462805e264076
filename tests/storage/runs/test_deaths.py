"""Releasing what a dead holder had: counted rightly, the agent's clock standing still."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

from bot.domain.ending import Cause, Close, Ending
from bot.domain.run import Run, RunState
from storage import accounts, chats, holders, runs
from storage.holders import Identity
from tests.storage.kit import DEADLINE, LEASE, Hand


def die(hand: Hand, holder: int) -> None:
    """The holder's lease runs out, and a pass finds it."""
    hand.mark_dead(holder)
    hand.do(runs.release_dead)


def counters(hand: Hand, run: Run) -> tuple[int, int]:
    found = hand.find(run)
    return found.deaths, found.failures


def poisoned(hand: Hand, run: Run, deaths: int) -> None:
    """The run's holders die under it so many times; nobody holds it then."""
    for number in range(deaths):
        holder = hand.new_holder(f"victim/{number}")
        assert run.id in {claimed.id for claimed in hand.claim(holder=holder)}
        die(hand, holder)


def test_a_holder_is_buried_once_and_only_when_overdue(hand: Hand) -> None:
    assert hand.do(holders.mark_overdue_dead, LEASE) == []
    hand.advance(LEASE + 1)
    assert hand.do(holders.mark_overdue_dead, LEASE) == [hand.holder]
    assert hand.do(holders.mark_overdue_dead, LEASE) == []


def test_a_holder_that_was_buried_cannot_renew(hand: Hand) -> None:
    assert hand.do(holders.renew, hand.holder)
    hand.advance(LEASE + 1)
    hand.do(holders.mark_overdue_dead, LEASE)
    assert not hand.do(holders.renew, hand.holder)


def test_a_holder_that_is_overdue_renews_unless_somebody_called_it_dead(hand: Hand) -> None:
    """The database's clock may have been set: whether it may still act, its own clock tells it."""
    hand.advance(LEASE + 1)
    assert hand.do(holders.renew, hand.holder)
    assert hand.do(holders.mark_overdue_dead, LEASE) == []


def test_a_holder_whose_last_renewal_lies_in_the_future_is_dead(hand: Hand) -> None:
    """The database's clock was set back: who lives has renewed since."""
    hand.advance(3600.0)
    assert hand.do(holders.renew, hand.holder)
    hand.advance(-3600.0)
    assert hand.do(holders.mark_overdue_dead, LEASE) == [hand.holder]


def test_the_owner_of_a_name_buries_its_earlier_lives_and_nobody_elses(hand: Hand) -> None:
    other = hand.new_holder("host/2")
    now = hand.new_holder("host/1")
    assert hand.do(holders.mark_earlier_dead, "host/1", now) == [hand.holder]
    assert hand.do(holders.renew, other)


@pytest.mark.parametrize(("own", "judges"), [(60.0, 15.0), (15.0, 60.0)])
def test_a_holder_is_judged_by_its_own_lease(hand: Hand, own: float, judges: float) -> None:
    """Settings are changed one process after another, and a command may have others."""
    me = Identity("host/7", "boot", "host", 7, "all", "0.3.0")
    holder = hand.do(holders.register, me, own)
    hand.advance(own - 5)
    assert holder not in hand.do(holders.mark_overdue_dead, judges)
    hand.advance(10)
    assert holder in hand.do(holders.mark_overdue_dead, judges)


def test_living_holders_lose_nothing_to_a_pass(hand: Hand) -> None:
    run = hand.running()
    assert hand.do(runs.release_dead) == []
    assert hand.find(run) == run


def test_a_death_is_counted_against_the_run_whose_agent_was_at_work(hand: Hand) -> None:
    run = hand.running()
    hand.mark_dead(hand.holder)
    [released] = hand.do(runs.release_dead)
    assert (released.run, released.holder, released.counted) == (run.id, hand.holder, True)
    found = hand.find(run)
    assert (found.state, found.holder, found.fence) == (RunState.READY, None, run.fence + 1)
    assert counters(hand, run) == (1, 0)
    assert hand.do(runs.release_dead) == []


def test_a_death_after_the_reply_was_stored_is_not_counted(hand: Hand) -> None:
    run = hand.running()
    hand.do(runs.mark_replied_each, [run.claim])
    hand.mark_dead(hand.holder)
    [released] = hand.do(runs.release_dead)
    assert not released.counted
    assert counters(hand, run) == (0, 0)


def test_a_death_while_draining_is_not_counted(hand: Hand) -> None:
    run = hand.running()
    hand.do(holders.drain, hand.holder)
    die(hand, hand.holder)
    assert counters(hand, run) == (0, 0)


def test_a_life_that_gives_back_counts_nothing(hand: Hand) -> None:
    made = [hand.running().id for _ in range(3)]
    released = hand.do(runs.release_own, hand.holder)
    assert sorted(r.run for r in released) == made
    assert hand.rows("SELECT DISTINCT state, deaths, failures FROM runs") == [("ready", 0, 0)]


def test_a_reader_releases_only_the_run_of_its_chat(hand: Hand) -> None:
    one, other = hand.running(), hand.running()
    hand.mark_dead(hand.holder)
    assert [r.run for r in hand.do(runs.release_dead, one.chat)] == [one.id]
    assert hand.find(other).state is RunState.RUNNING


def test_many_runs_of_the_dead_are_released_in_bounded_passes(hand: Hand) -> None:
    for _ in range(runs.RELEASED_AT_ONCE + 3):
        hand.running()
    hand.mark_dead(hand.holder)
    assert len(hand.do(runs.release_dead)) == runs.RELEASED_AT_ONCE
    assert len(hand.do(runs.release_dead)) == 3


def test_a_run_that_saw_two_deaths_is_claimed_only_in_quarantine(hand: Hand) -> None:
    suspect = hand.ready(hand.new_chat())
    poisoned(hand, suspect, 2)
    other = hand.ready(hand.new_chat())
    assert counters(hand, suspect) == (2, 0)
    assert {run.id for run in hand.claim()} == {suspect.id, other.id}
    assert hand.value("SELECT quarantined FROM runs WHERE id = :id", id=suspect.id)


def test_a_holder_runs_one_suspect_at_a_time_and_others_beside_it(hand: Hand) -> None:
    suspects = [hand.ready(hand.new_chat()) for _ in range(3)]
    for number in range(2):
        holder = hand.new_holder(f"victim/{number}")
        assert len(hand.claim(holder=holder)) == 3
        die(hand, holder)
    innocent = hand.ready(hand.new_chat())
    assert [run.id for run in hand.claim()] == [suspects[0].id, innocent.id]
    assert hand.claim() == []
    assert [r.id for r in hand.claim(holder=hand.new_holder("host/2"))] == [suspects[1].id]


def test_the_one_in_quarantine_is_charged_and_its_neighbours_are_not(hand: Hand) -> None:
    suspect = hand.ready(hand.new_chat())
    poisoned(hand, suspect, 2)
    neighbour = hand.ready(hand.new_chat())
    holder = hand.new_holder("host/9")
    assert len(hand.claim(holder=holder)) == 2
    die(hand, holder)
    assert counters(hand, suspect) == (3, 1)
    assert counters(hand, neighbour) == (1, 0)


def test_the_suspect_with_the_fewest_failures_goes_first(hand: Hand) -> None:
    poison, unlucky = hand.ready(hand.new_chat()), hand.ready(hand.new_chat())
    for number in range(2):
        holder = hand.new_holder(f"victim/{number}")
        assert len(hand.claim(holder=holder)) == 2
        die(hand, holder)
    holder = hand.new_holder("victim/3")
    assert [run.id for run in hand.claim(holder=holder)] == [poison.id]
    die(hand, holder)
    assert [run.id for run in hand.claim()] == [unlucky.id]


def test_progress_clears_the_suspicion(hand: Hand) -> None:
    suspect = hand.ready(hand.new_chat())
    poisoned(hand, suspect, 2)
    [claimed] = hand.claim()
    hand.do(runs.progress, claimed.claim)
    assert counters(hand, suspect) == (0, 0)
    hand.do(runs.give_back, claimed.claim, 0.0, "later")
    assert not hand.value("SELECT quarantined FROM runs")


def test_a_suspect_whose_reply_is_stored_needs_no_quarantine(hand: Hand) -> None:
    suspect = hand.ready(hand.new_chat())
    poisoned(hand, suspect, 2)
    [claimed] = hand.claim()
    hand.do(runs.mark_replied_each, [claimed.claim])
    die(hand, hand.holder)
    assert counters(hand, suspect) == (2, 0)
    assert not hand.value("SELECT quarantined FROM runs")


def test_a_run_that_is_set_aside_is_not_claimed_and_stays_live(hand: Hand) -> None:
    run = hand.running()
    hand.do(runs.set_aside, run.claim, "it breaks its turn")
    assert hand.claim() == []
    assert hand.do(runs.oldest_due) is None
    assert hand.find(run).state is RunState.READY


def deadline(hand: Hand, run: Run) -> float:
    found = hand.find(run).deadline_at
    assert found is not None
    return found


def test_the_deadline_moves_by_the_time_in_which_the_holder_was_dead(hand: Hand) -> None:
    hand.stop_time()
    run = hand.running()
    hand.advance(3_600)
    hand.mark_dead(hand.holder)
    hand.do(runs.release_dead)
    hand.advance(600)
    [again] = hand.claim(holder=hand.new_holder("host/2"))
    assert deadline(hand, again) == pytest.approx(deadline(hand, run), abs=0.01)
    assert deadline(hand, again) == pytest.approx(hand.clock.wall() + DEADLINE, abs=0.01)


def test_the_deadline_moves_by_an_outage_that_a_lapsed_life_ended(hand: Hand) -> None:
    hand.stop_time()
    run = hand.running()
    hand.advance(3_600)
    hand.do(runs.release_own, hand.holder)
    [again] = hand.claim(holder=hand.new_holder("host/2"))
    assert again.id == run.id
    assert deadline(hand, again) == pytest.approx(hand.clock.wall() + DEADLINE, abs=0.01)


def test_time_in_a_paused_chat_is_not_work(hand: Hand) -> None:
    hand.stop_time()
    run = hand.running()
    hand.do(chats.pause, run.chat, None)
    hand.do(runs.give_back, run.claim, 0.0, "paused")
    hand.advance(7_200)
    hand.do(chats.resume, run.chat)
    assert hand.do(runs.promote, run.chat) == run.id
    [again] = hand.claim(holder=hand.new_holder("host/2"))
    assert deadline(hand, again) == pytest.approx(hand.clock.wall() + DEADLINE, abs=0.01)


def test_a_wait_that_the_agent_asked_for_is_work(hand: Hand) -> None:
    hand.stop_time()
    run = hand.running()
    hand.do(runs.retry_later, run.claim, 60.0, "busy")
    hand.advance(60)
    [again] = hand.claim(holder=hand.new_holder("host/2"))
    assert deadline(hand, again) == pytest.approx(hand.clock.wall() + DEADLINE - 60, abs=0.01)


def test_a_wait_of_the_platforms_is_not_work(hand: Hand) -> None:
    hand.stop_time()
    run = hand.running()
    hand.do(runs.give_back, run.claim, 60.0, "limited")
    hand.advance(60)
    [again] = hand.claim(holder=hand.new_holder("host/2"))
    assert deadline(hand, again) == pytest.approx(hand.clock.wall() + DEADLINE, abs=0.01)


def test_chats_whose_waiters_nobody_promoted_are_found(hand: Hand) -> None:
    busy, stranded, paused = (hand.new_chat() for _ in range(3))
    hand.running(busy)
    for chat in (busy, stranded, paused):
        hand.waiting(chat)
    hand.do(chats.pause, paused, None)
    assert hand.do(runs.stranded_chats, 10) == [stranded]


def test_the_oldest_due_run_is_told_by_its_age(hand: Hand) -> None:
    hand.stop_time()
    assert hand.do(runs.oldest_due) is None
    hand.ready(hand.new_chat(), wait=500.0)
    assert hand.do(runs.oldest_due) is None
    hand.ready(hand.new_chat())
    hand.advance(40)
    assert hand.do(runs.oldest_due) == pytest.approx(40, abs=0.01)


def test_holders_that_left_something_are_not_forgotten(hand: Hand) -> None:
    run = hand.running()
    hand.mark_dead(hand.holder)
    hand.advance(100_000)
    assert hand.do(holders.forget_gone, 86_400.0) == 0
    hand.do(runs.release_dead)
    assert hand.do(holders.forget_gone, 86_400.0) == 1
    assert hand.do(runs.end_live, run.id, Close(Ending.CANCELLED, Cause.OPERATOR))


def test_one_process_polls_for_an_account_until_its_lease_is_over(hand: Hand) -> None:
    other = hand.new_holder("host/2")
    assert hand.do(accounts.take_polling, hand.account, hand.holder, LEASE)
    assert hand.do(accounts.take_polling, hand.account, hand.holder, LEASE)
    assert not hand.do(accounts.take_polling, hand.account, other, LEASE)
    hand.mark_dead(hand.holder)
    assert hand.do(accounts.take_polling, hand.account, other, LEASE)
    assert not hand.do(accounts.take_polling, hand.account, hand.holder, LEASE)


def test_of_a_process_before_the_boot_or_the_copy_the_wall_clock_tells_the_age(hand: Hand) -> None:
    old = hand.new_holder("host/2")
    set_ = "UPDATE holders SET clock = 'another', renewed_at = -1000000 WHERE id = :id"
    hand.do(lambda tx: tx.execute(text(set_), {"id": old}))
    [told] = [row for row in hand.do(holders.listed, LEASE) if row.id == old]
    assert told.gone
    assert 0.0 <= told.lease_age < LEASE


def test_a_session_whose_commit_gave_no_answer_begins_once(hand: Hand) -> None:
    me = Identity("host/1", "boot", "host", 1, "all", "0.2.0")
    first = hand.do(holders.register, me)
    assert hand.do(holders.register, replace(me, name="host/2")) == first
    assert hand.rows("SELECT name FROM holders WHERE boot = 'boot'") == [("host/2",)]
