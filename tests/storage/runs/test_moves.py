"""Every move of a run, won and lost. A test is named for who loses."""

from __future__ import annotations

import pytest

from bot.domain.ending import Cause, Close, Ending
from bot.domain.errors import StaleLease
from bot.domain.run import Claim, Run, RunState
from storage import accounts, chats, holders, runs
from storage.statements.tx import StatementFailed
from tests.storage.kit import LEASE, Hand

ANSWERED = Close(Ending.ANSWERED, Cause.DELIVERED)
CLOSED = Close(Ending.CANCELLED, Cause.OPERATOR, "closed")


def taken_over(hand: Hand, run: Run) -> Run:
    """The run's holder dies, the run is released and claimed by another holder."""
    hand.mark_dead(run.holder or 0)
    hand.do(runs.release_dead)
    [again] = hand.claim(holder=hand.new_holder("host/2"))
    assert again.id == run.id
    return again


def test_a_run_is_claimed_once_and_its_fence_goes_up(hand: Hand) -> None:
    hand.stop_time()
    run = hand.ready(hand.new_chat())
    [claimed] = hand.claim()
    assert (claimed.id, claimed.state, claimed.holder) == (run.id, RunState.RUNNING, hand.holder)
    assert (claimed.fence, claimed.attempts) == (run.fence + 1, 1)
    assert claimed.deadline_at == pytest.approx(hand.clock.wall() + 900, abs=0.01)


def test_a_second_claimant_gets_nothing(hand: Hand) -> None:
    hand.ready(hand.new_chat())
    hand.claim()
    assert hand.claim(holder=hand.new_holder("host/2")) == []


def test_a_holder_that_is_gone_claims_nothing(hand: Hand) -> None:
    hand.ready(hand.new_chat())
    hand.mark_dead(hand.holder)
    assert hand.claim() == []


def test_a_holder_whose_lease_ran_out_claims_nothing(hand: Hand) -> None:
    hand.ready(hand.new_chat())
    hand.advance(LEASE + 1)
    assert hand.claim() == []


def test_a_run_that_is_not_due_is_not_claimed(hand: Hand) -> None:
    hand.ready(hand.new_chat(), wait=30.0)
    assert hand.claim() == []
    hand.advance(10)
    hand.do(holders.renew, hand.holder)
    hand.advance(10)
    hand.do(holders.renew, hand.holder)
    hand.advance(10.5)
    assert len(hand.claim()) == 1


def test_a_run_that_waits_behind_another_is_not_claimed(hand: Hand) -> None:
    chat = hand.new_chat()
    hand.running(chat)
    hand.waiting(chat)
    assert hand.claim() == []


def test_nobody_claims_for_an_account_that_is_not_theirs(hand: Hand) -> None:
    hand.ready(hand.new_chat())
    assert hand.do(runs.claim, hand.claimant(), {hand.new_account("other"): 5}, 5) == []


def test_while_an_account_is_down_all_is_claimed_but_what_was_kept_until_it_is_up(
    hand: Hand,
) -> None:
    kept = [hand.running() for _ in range(3)]
    hand.do(accounts.mark_down, hand.account, "the token was revoked")
    for run in kept:
        hand.do(runs.keep, run.claim, "the channel is down")
    fresh = hand.ready(hand.new_chat())
    assert [run.id for run in hand.claim()] == [fresh.id]
    hand.advance(3600)
    hand.do(holders.renew, hand.holder)
    assert hand.claim() == []
    hand.do(accounts.mark_up, hand.account)
    newer = hand.ready(hand.new_chat())
    assert [run.id for run in hand.claim(room=2)] == [run.id for run in kept[:2]]
    assert [run.id for run in hand.claim()] == [kept[2].id, newer.id]
    assert [hand.find(run).failures for run in kept] == [0, 0, 0]


def test_what_is_kept_is_claimed_though_it_was_given_back_after_the_account_was_up(
    hand: Hand,
) -> None:
    """Whoever keeps it may have read the account's state a moment before."""
    run = hand.running()
    hand.do(runs.keep, run.claim, "the channel is down")
    assert [claimed.id for claimed in hand.claim()] == [run.id]


def test_a_kept_run_of_a_paused_chat_stays_kept_when_it_is_resumed(hand: Hand) -> None:
    run = hand.running()
    hand.do(accounts.mark_down, hand.account, "the token was revoked")
    hand.do(chats.pause, run.chat, None)
    hand.do(runs.keep, run.claim, "the channel is down")
    assert hand.find(run).state is RunState.WAITING
    hand.do(chats.resume, run.chat)
    assert hand.do(runs.promote, run.chat) == run.id
    assert hand.claim() == []
    hand.do(accounts.mark_up, hand.account)
    assert [claimed.id for claimed in hand.claim()] == [run.id]


def test_what_is_kept_stays_kept_when_the_clock_is_set(hand: Hand) -> None:
    run = hand.running()
    hand.do(accounts.mark_down, hand.account, "the token was revoked")
    hand.do(runs.keep, run.claim, "the channel is down")
    for step in (-86_400.0, 86_400.0):
        hand.do(chats.follow_clock, step)
        hand.do(runs.follow_clock, step)
    assert hand.claim() == []
    hand.do(accounts.mark_up, hand.account)
    assert [claimed.id for claimed in hand.claim()] == [run.id]


def test_claims_take_the_first_due_first_and_no_more_than_there_is_room_for(hand: Hand) -> None:
    made = [hand.ready(hand.new_chat()) for _ in range(4)]
    assert [run.id for run in hand.claim(room=3)] == [run.id for run in made[:3]]
    assert [run.id for run in hand.claim(room=3)] == [made[3].id]


def test_a_claim_takes_of_each_account_no_more_than_its_own_room(hand: Hand) -> None:
    made = {}
    for account in (hand.account, hand.new_account("other")):
        hand.account = account
        made[account] = [hand.ready(hand.new_chat()).id for _ in range(3)]
    [mine, other] = made
    claimed = hand.do(runs.claim, hand.claimant(), {mine: 1, other: 2}, 5)
    assert [run.id for run in claimed] == [made[mine][0], *made[other][:2]]
    claimed = hand.do(runs.claim, hand.claimant(), {mine: 5, other: 5}, 2)
    assert [run.id for run in claimed] == made[mine][1:]


def test_a_run_that_was_put_back_is_not_starved_by_newer_ones(hand: Hand) -> None:
    old = hand.running()
    hand.do(runs.give_back, old.claim, 0.0, "later")
    for _ in range(3):
        hand.ready(hand.new_chat())
    assert [run.id for run in hand.claim(room=1)] == [old.id]


def test_a_draining_holder_gives_birth_to_no_running_run(hand: Hand) -> None:
    hand.do(holders.drain, hand.holder)
    run = hand.insert(hand.new_chat(), head=True, by=hand.claimant())
    assert (run.state, run.attempts) == (RunState.READY, 0)


def test_a_holder_that_is_gone_gives_birth_to_no_running_run(hand: Hand) -> None:
    hand.mark_dead(hand.holder)
    run = hand.insert(hand.new_chat(), head=True, by=hand.claimant())
    assert (run.state, run.holder, run.fence) == (RunState.READY, None, 0)


def test_a_run_is_born_running_also_while_its_account_is_down(hand: Hand) -> None:
    hand.do(accounts.mark_down, hand.account, "the token was revoked")
    run = hand.insert(hand.new_chat(), head=True, by=hand.claimant())
    assert run.state is RunState.RUNNING
    assert hand.do(chats.lock, run.chat).down


def test_a_run_that_gathers_is_not_born_running(hand: Hand) -> None:
    hand.stop_time()
    run = hand.insert(hand.new_chat(), head=True, by=hand.claimant(), wait=1.0)
    assert run.state is RunState.READY
    assert run.not_before == pytest.approx(hand.clock.wall() + 1, abs=0.01)


def test_a_chat_never_has_two_heads(hand: Hand) -> None:
    chat = hand.new_chat()
    hand.running(chat)
    with pytest.raises(StatementFailed):
        hand.insert(chat, head=True)


def test_a_message_joins_a_run_that_nobody_claimed(hand: Hand) -> None:
    run = hand.ready(hand.new_chat())
    assert hand.do(runs.join, [(run.id, 0.0, 0.0)], at_once=False)
    assert hand.rows("SELECT messages, attempts FROM runs") == [(2, 0)]


def test_a_message_that_comes_after_the_claim_does_not_join(hand: Hand) -> None:
    run = hand.ready(hand.new_chat())
    hand.claim()
    assert not hand.do(runs.join, [(run.id, 0.0, 0.0)], at_once=False)
    hand.do(runs.give_back, hand.find(run).claim, 0.0, "later")
    assert not hand.do(runs.join, [(run.id, 0.0, 0.0)], at_once=False)
    assert hand.value("SELECT messages FROM runs") == 1


def test_a_gathering_run_is_put_off_but_not_for_ever(hand: Hand) -> None:
    run = hand.ready(hand.new_chat(), wait=1.0)
    until = run.not_before + 2.0
    assert hand.do(runs.join, [(run.id, 1.5, until)], at_once=False)
    assert run.not_before < hand.find(run).not_before < until
    assert hand.do(runs.join, [(run.id, 60.0, until)], at_once=False)
    assert hand.find(run).not_before == until


def test_an_edit_that_comes_after_the_claim_finds_the_run_taken(hand: Hand) -> None:
    run = hand.ready(hand.new_chat())
    assert hand.do(runs.lock_unclaimed, run.id)
    hand.claim()
    assert not hand.do(runs.lock_unclaimed, run.id)


MOVES = {
    "hold": runs.hold,
    "give_back": lambda tx, claim: runs.give_back(tx, claim, 0.0, "later"),
    "retry_later": lambda tx, claim: runs.retry_later(tx, claim, 1.0, "asked"),
    "fail": lambda tx, claim: runs.fail(tx, claim, 1.0, "it broke"),
    "settle": lambda tx, claim: runs.settle(tx, claim, Close(Ending.ANSWERED, Cause.DELIVERED)),
    "progress": runs.progress,
    "explain": lambda tx, claim: runs.explain(tx, claim, Cause.FAILURES, "three failures"),
    "set_aside": lambda tx, claim: runs.set_aside(tx, claim, "it breaks"),
}


@pytest.mark.parametrize("move", MOVES)
def test_the_worker_that_holds_the_run_makes_the_move(hand: Hand, move: str) -> None:
    run = hand.running()
    hand.do(MOVES[move], run.claim)


@pytest.mark.parametrize("move", MOVES)
def test_a_worker_whose_lease_was_taken_cannot_make_the_move(hand: Hand, move: str) -> None:
    run = hand.running()
    again = taken_over(hand, run)
    with pytest.raises(StaleLease):
        hand.do(MOVES[move], run.claim)
    assert hand.find(run) == again


@pytest.mark.parametrize("move", MOVES)
def test_a_worker_with_an_older_fence_of_the_same_holder_cannot_either(
    hand: Hand, move: str
) -> None:
    run = hand.running()
    with pytest.raises(StaleLease):
        hand.do(MOVES[move], Claim(run.id, hand.holder, run.fence - 1))
    assert hand.find(run) == run


@pytest.mark.parametrize("move", MOVES)
def test_a_worker_whose_run_was_stopped_cannot_make_the_move(hand: Hand, move: str) -> None:
    run = hand.running()
    assert hand.do(
        runs.end_live, run.id, Close(Ending.WITHDRAWN, Cause.STOPPED, "the person stopped it")
    )
    ended = hand.find(run)
    with pytest.raises(StaleLease):
        hand.do(MOVES[move], run.claim)
    assert hand.find(run) == ended


def test_a_stop_ends_every_live_state_and_nothing_twice(hand: Hand) -> None:
    chat = hand.new_chat()
    head, waiter = hand.running(chat), hand.waiting(chat)
    other = hand.ready(hand.new_chat())
    for run in (head, waiter, other):
        assert hand.do(runs.end_live, run.id, Close(Ending.WITHDRAWN, Cause.STOPPED, "stop"))
        assert not hand.do(runs.end_live, run.id, Close(Ending.CANCELLED, Cause.OPERATOR, "again"))
        assert hand.find(run).ending is Ending.WITHDRAWN


def test_an_operator_who_looked_at_an_older_fence_ends_nothing(hand: Hand) -> None:
    run = hand.running()
    assert not hand.do(runs.end_live, run.id, CLOSED, run.fence - 1)
    assert hand.find(run) == run
    assert hand.do(runs.end_live, run.id, CLOSED, run.fence)


def test_the_oldest_waiter_is_promoted_when_the_head_has_ended(hand: Hand) -> None:
    chat = hand.new_chat()
    head = hand.running(chat)
    late, early = hand.waiting(chat, order_at=20.0), hand.waiting(chat, order_at=10.0)
    assert hand.do(runs.promote, chat) is None
    hand.do(runs.settle, head.claim, ANSWERED)
    assert hand.do(runs.promote, chat) == early.id
    assert hand.do(runs.promote, chat) is None
    assert hand.find(late).state is RunState.WAITING


def test_nothing_is_promoted_in_a_paused_chat(hand: Hand) -> None:
    chat = hand.new_chat()
    waiter = hand.waiting(chat)
    hand.do(chats.pause, chat, None)
    assert hand.do(runs.promote, chat) is None
    assert hand.do(chats.resume, chat)
    assert hand.do(runs.promote, chat) == waiter.id


def test_a_run_that_comes_back_to_a_paused_chat_waits(hand: Hand) -> None:
    run = hand.running()
    hand.do(chats.pause, run.chat, None)
    hand.do(runs.give_back, run.claim, 0.0, "the chat is paused")
    assert hand.find(run).state is RunState.WAITING
    assert hand.claim() == []


def test_an_ending_is_corrected_only_from_what_it_was(hand: Hand) -> None:
    run = hand.running()
    hand.do(runs.settle, run.claim, Close(Ending.UNCERTAIN, Cause.UNCONFIRMED, "a time-out"))
    correct = (
        run.id,
        Ending.UNCERTAIN,
        Close(Ending.ANSWERED, Cause.DELIVERED, "a late delivery status"),
    )
    assert hand.do(runs.correct_ending, *correct)
    assert not hand.do(runs.correct_ending, *correct)
    assert hand.find(run).ending is Ending.ANSWERED


def test_a_live_run_has_no_ending_to_correct(hand: Hand) -> None:
    run = hand.running()
    assert not hand.do(
        runs.correct_ending, run.id, Ending.UNCERTAIN, Close(Ending.ANSWERED, Cause.DELIVERED)
    )
