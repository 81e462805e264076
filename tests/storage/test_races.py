"""Races between the moves of runs, on two connections: each is lost once and won once.

The first transaction makes its move and stays open; the second begins, waits for its rows, and
finds out what became of them.
"""

from __future__ import annotations

import pytest

from bot.domain.ending import Cause, Close, Ending
from bot.domain.errors import StaleLease
from bot.domain.message import Address
from bot.domain.run import Run, RunState
from bot.runs.shutdown import give_back_all
from storage import accounts, chats, holders, outbox, runs
from storage.runs import NewRun
from storage.statements.tx import StatementFailed, Tx
from tests.storage.kit import LEASE, Hand, first_message, message, store
from tests.storage.rivals import First, first, outcome

Won = bool
both_ways = pytest.mark.parametrize("commits", [True, False], ids=["lost", "won"])


def end(rival: First, *, commits: Won) -> None:
    """The first transaction ends: only if it commits does the second one lose."""
    if commits:
        rival.commit()
    else:
        rival.rollback()


def arrive(tx: Tx, hand: Hand, chat: int) -> Run:
    """A message comes: its run is the head of an idle chat, or waits."""
    chats.lock(tx, chat)
    head = not runs.live_in_chat(tx, chat)
    return runs.create(tx, [NewRun(hand.account, chat, "tg-1", 1.0, head, hand.claimant())])[chat]


def finish(tx: Tx, run: Run) -> int | None:
    """The run's worker settles it and promotes the next."""
    chats.lock(tx, run.chat)
    runs.settle(tx, run.claim, Close(Ending.ANSWERED, Cause.DELIVERED))
    return runs.promote(tx, run.chat)


def stop(tx: Tx, run: Run) -> bool:
    """The person stops the run."""
    chats.lock(tx, run.chat)
    return runs.end_live(tx, run.id, Close(Ending.WITHDRAWN, Cause.STOPPED, "stop"))


def begin_part(tx: Tx, run: Run, part: int) -> bool:
    """The run's worker begins a part."""
    chats.lock(tx, run.chat)
    runs.hold(tx, run.claim)
    return outbox.mark_sending(tx, run.claim, part) is not None


@both_ways
def test_two_first_messages_of_one_person_are_in_one_chat(
    postgres_hand: Hand, commits: Won
) -> None:
    hand, who = postgres_hand, Address("700")
    with first(hand) as rival:
        made = rival.do(first_message, hand.account, who)
        waiting = rival.rival(first_message, hand.account, who)
        end(rival, commits=commits)
        assert (outcome(waiting) == made) is commits
    assert hand.value("SELECT count(*) FROM chats") == 1
    found = hand.do(chats.locate, hand.account, [Address("700")])
    assert found == outcome(waiting)


@both_ways
def test_the_second_delivery_of_a_message_is_recorded_only_if_the_first_is_not(
    postgres_hand: Hand, commits: Won
) -> None:
    hand, chat = postgres_hand, postgres_hand.new_chat()
    with first(hand) as rival:
        rival.do(store, hand.account, chat, message(1))
        waiting = rival.rival(store, hand.account, chat, message(1))
        end(rival, commits=commits)
        assert (outcome(waiting) is StatementFailed) is commits
    assert hand.value("SELECT count(*) FROM inbound") == 1


@both_ways
def test_two_messages_at_once_never_make_two_heads(postgres_hand: Hand, commits: Won) -> None:
    hand, chat = postgres_hand, postgres_hand.new_chat()
    with first(hand) as rival:
        assert rival.do(arrive, hand, chat).state is RunState.RUNNING
        waiting = rival.rival(arrive, hand, chat)
        end(rival, commits=commits)
        expected = RunState.WAITING if commits else RunState.RUNNING
        assert outcome(waiting).state is expected


@both_ways
def test_a_message_does_not_join_a_run_that_is_being_claimed(
    postgres_hand: Hand, commits: Won
) -> None:
    hand = postgres_hand
    run = hand.ready(hand.new_chat())
    with first(hand) as rival:
        assert len(rival.do(runs.claim, hand.claimant(), {hand.account: 1}, 1)) == 1
        waiting = rival.rival(runs.join, [(run.id, 0.0, 0.0)], at_once=False)
        end(rival, commits=commits)
        assert bool(outcome(waiting)) is not commits
    assert hand.value("SELECT messages FROM runs") == (1 if commits else 2)


def test_a_claim_does_not_wait_for_a_message_that_is_joining_and_takes_it_along(
    postgres_hand: Hand,
) -> None:
    hand = postgres_hand
    run = hand.ready(hand.new_chat())
    with first(hand) as rival:
        assert rival.do(runs.join, [(run.id, 0.0, 0.0)], at_once=False)
        assert hand.claim() == []
        rival.commit()
    assert [claimed.id for claimed in hand.claim()] == [run.id]
    assert hand.value("SELECT messages FROM runs") == 2


@both_ways
def test_an_edit_is_not_used_by_a_run_that_is_being_claimed(
    postgres_hand: Hand, commits: Won
) -> None:
    hand = postgres_hand
    run = hand.ready(hand.new_chat())
    with first(hand) as rival:
        rival.do(runs.claim, hand.claimant(), {hand.account: 1}, 1)
        waiting = rival.rival(runs.lock_unclaimed, run.id)
        end(rival, commits=commits)
        assert outcome(waiting) is not commits


def test_a_claim_passes_by_a_run_whose_message_is_being_edited(postgres_hand: Hand) -> None:
    hand = postgres_hand
    run, other = hand.ready(hand.new_chat()), hand.ready(hand.new_chat())
    with first(hand) as rival:
        assert rival.do(runs.lock_unclaimed, run.id)
        assert [claimed.id for claimed in hand.claim()] == [other.id]
    assert [claimed.id for claimed in hand.claim()] == [run.id]


@both_ways
def test_two_workers_never_claim_the_same_run(postgres_hand: Hand, commits: Won) -> None:
    hand = postgres_hand
    for _ in range(3):
        hand.ready(hand.new_chat())
    other = hand.new_holder("host/2")
    with first(hand) as rival:
        mine = rival.do(runs.claim, hand.claimant(), {hand.account: 2}, 2)
        assert len(mine) == 2
        theirs = hand.claim(holder=other)
        assert {run.id for run in mine}.isdisjoint(run.id for run in theirs)
        end(rival, commits=commits)
    assert len(hand.claim(holder=other)) == (0 if commits else 2)


@both_ways
def test_a_worker_whose_run_is_being_stopped_cannot_settle(
    postgres_hand: Hand, commits: Won
) -> None:
    hand = postgres_hand
    run = hand.running()
    with first(hand) as rival:
        assert rival.do(stop, run)
        waiting = rival.rival(finish, run)
        end(rival, commits=commits)
        assert outcome(waiting) is (StaleLease if commits else None)
    assert hand.find(run).ending is (Ending.WITHDRAWN if commits else Ending.ANSWERED)


@both_ways
def test_a_stop_that_comes_while_the_run_is_settled_ends_nothing(
    postgres_hand: Hand, commits: Won
) -> None:
    hand = postgres_hand
    run = hand.running()
    with first(hand) as rival:
        rival.do(finish, run)
        waiting = rival.rival(stop, run)
        end(rival, commits=commits)
        assert outcome(waiting) is not commits
    assert hand.find(run).ending is (Ending.ANSWERED if commits else Ending.WITHDRAWN)


@both_ways
def test_b13_a_message_that_comes_while_the_head_is_settled_is_not_stranded(
    postgres_hand: Hand, commits: Won
) -> None:
    hand = postgres_hand
    head = hand.running()
    with first(hand) as rival:
        assert rival.do(finish, head) is None
        waiting = rival.rival(arrive, hand, head.chat)
        end(rival, commits=commits)
        expected = RunState.RUNNING if commits else RunState.WAITING
        assert outcome(waiting).state is expected
    assert hand.do(runs.stranded_chats, 10) == []


@both_ways
def test_b13_the_run_that_settles_promotes_a_message_that_came_just_before(
    postgres_hand: Hand, commits: Won
) -> None:
    hand = postgres_hand
    head = hand.running()
    with first(hand) as rival:
        came = rival.do(arrive, hand, head.chat)
        assert came.state is RunState.WAITING
        waiting = rival.rival(finish, head)
        end(rival, commits=commits)
        assert outcome(waiting) == (came.id if commits else None)
    assert hand.do(runs.stranded_chats, 10) == []


@both_ways
def test_a_waiter_is_promoted_once(postgres_hand: Hand, commits: Won) -> None:
    hand, chat = postgres_hand, postgres_hand.new_chat()
    waiters = [hand.waiting(chat, order_at=at) for at in (1.0, 2.0)]

    def promote(tx: Tx) -> int | None:
        chats.lock(tx, chat)
        return runs.promote(tx, chat)

    with first(hand) as rival:
        assert rival.do(promote) == waiters[0].id
        waiting = rival.rival(promote)
        end(rival, commits=commits)
        assert outcome(waiting) == (None if commits else waiters[0].id)
    assert hand.find(waiters[1]).state is RunState.WAITING


@both_ways
def test_no_part_is_begun_after_a_stop(postgres_hand: Hand, commits: Won) -> None:
    hand = postgres_hand
    run = hand.running()
    [part] = hand.parts(run)
    with first(hand) as rival:
        rival.do(stop, run)
        waiting = rival.rival(begin_part, run, part.id)
        end(rival, commits=commits)
        assert outcome(waiting) is (StaleLease if commits else True)
    assert hand.part(part.id).state == ("pending" if commits else "sending")


@both_ways
def test_a_stop_that_comes_while_a_part_is_begun_lets_it_finish(
    postgres_hand: Hand, commits: Won
) -> None:
    hand = postgres_hand
    run = hand.running()
    [part] = hand.parts(run)
    with first(hand) as rival:
        rival.do(begin_part, run, part.id)
        waiting = rival.rival(stop, run)
        end(rival, commits=commits)
        assert outcome(waiting) is True
    assert hand.part(part.id).state == ("sending" if commits else "pending")
    if commits:
        assert hand.do(outbox.receive, outbox.Attempt(part.id, 1), "m1")


@both_ways
def test_a_part_that_is_begun_while_its_process_leaves_was_not_sent(
    postgres_hand: Hand, commits: Won
) -> None:
    """A turn that was cut may still be marking one; its call is never made."""
    hand = postgres_hand
    run = hand.running()
    [part] = hand.parts(run)
    hand.do(runs.mark_replied_each, [run.claim])
    with first(hand) as rival:
        rival.do(begin_part, run, part.id)
        waiting = rival.rival(give_back_all, hand.holder, "host/1")
        end(rival, commits=commits)
        assert outcome(waiting) == 1
    assert hand.part(part.id).state == "pending"
    assert hand.find(run).state is RunState.READY


@both_ways
def test_a_pause_that_is_being_made_is_seen_by_a_run_that_comes_back(
    postgres_hand: Hand, commits: Won
) -> None:
    hand = postgres_hand
    run = hand.running()

    def pause(tx: Tx) -> None:
        chats.lock(tx, run.chat)
        chats.pause(tx, run.chat, None)

    def give_back(tx: Tx) -> None:
        chats.lock(tx, run.chat)
        runs.give_back(tx, run.claim, 0.0, "later")

    with first(hand) as rival:
        rival.do(pause)
        waiting = rival.rival(give_back)
        end(rival, commits=commits)
        assert outcome(waiting) is None
    assert hand.find(run).state is (RunState.WAITING if commits else RunState.READY)


@both_ways
def test_a_worker_that_settles_while_its_run_is_released_loses(
    postgres_hand: Hand, commits: Won
) -> None:
    hand = postgres_hand
    run = hand.running()
    hand.mark_dead(hand.holder)
    with first(hand) as rival:
        assert len(rival.do(runs.release_dead)) == 1
        waiting = rival.rival(finish, run)
        end(rival, commits=commits)
        assert outcome(waiting) is (StaleLease if commits else None)


def test_a_pass_leaves_a_run_alone_that_is_being_settled(postgres_hand: Hand) -> None:
    hand = postgres_hand
    run = hand.running()
    hand.mark_dead(hand.holder)
    with first(hand) as rival:
        rival.do(finish, run)
        assert hand.do(runs.release_dead) == []
        rival.commit()
    assert hand.do(runs.release_dead) == []
    assert hand.find(run).ending is Ending.ANSWERED


def test_two_passes_at_once_release_each_run_once(postgres_hand: Hand) -> None:
    hand = postgres_hand
    for _ in range(3):
        hand.running()
    hand.mark_dead(hand.holder)
    with first(hand) as rival:
        assert len(rival.do(runs.release_dead)) == 3
        assert hand.do(runs.release_dead) == []
        rival.commit()
    assert hand.rows("SELECT DISTINCT deaths FROM runs") == [(1,)]


@both_ways
def test_a_holder_that_renews_just_in_time_is_not_buried(postgres_hand: Hand, commits: Won) -> None:
    hand = postgres_hand
    hand.advance(LEASE - 100)
    with first(hand) as rival:
        assert rival.do(holders.renew, hand.holder)
        hand.advance(200)
        waiting = rival.rival(holders.mark_overdue_dead, LEASE)
        end(rival, commits=commits)
        assert outcome(waiting) == ([] if commits else [hand.holder])


@both_ways
def test_a_holder_that_is_being_buried_cannot_renew(postgres_hand: Hand, commits: Won) -> None:
    hand = postgres_hand
    with first(hand) as rival:
        assert rival.do(holders.mark_earlier_dead, "host/1", -1) == [hand.holder]
        waiting = rival.rival(holders.renew, hand.holder)
        end(rival, commits=commits)
        assert outcome(waiting) is not commits


def test_a_run_that_is_born_under_a_holder_that_is_being_buried_is_released(
    postgres_hand: Hand,
) -> None:
    hand = postgres_hand
    with first(hand) as rival:
        rival.do(holders.mark_earlier_dead, "host/1", -1)
        born = hand.running()
        rival.commit()
    assert [r.run for r in hand.do(runs.release_dead)] == [born.id]


@both_ways
def test_one_process_becomes_the_poller(postgres_hand: Hand, commits: Won) -> None:
    hand = postgres_hand
    other = hand.new_holder("host/2")
    with first(hand) as rival:
        assert rival.do(accounts.take_polling, hand.account, hand.holder, LEASE)
        waiting = rival.rival(accounts.take_polling, hand.account, other, LEASE)
        end(rival, commits=commits)
        assert outcome(waiting) is not commits
