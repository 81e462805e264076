"""Every move of a part, won and lost. A test is named for who loses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.delivery import PartState, Scope
from bot.domain.ending import Cause, Close, Ending
from bot.domain.reply import PartBody, PartKind
from storage import accounts, chats, outbox, runs
from storage.outbox import Attempt, Notice, Part
from storage.views.evidence import gather_one
from tests.kit.receipts import RECEIPTS
from tests.storage.kit import LEASE, Hand


def begun(hand: Hand) -> Part:
    """A part of a running run that is being sent."""
    return hand.parts(hand.running(), begun=True)[0]


def attempt(part: Part) -> Attempt:
    return Attempt(part.id, part.attempts)


def test_a_reply_that_is_stored_again_stays_as_it_is(hand: Hand) -> None:
    run = hand.running()
    first = hand.parts(run, "one", "two", begun=True)
    assert hand.parts(run, "something", "else", begun=True) == first


def test_a_part_is_begun_once(hand: Hand) -> None:
    run = hand.running()
    [part] = hand.parts(run)
    sending = hand.do(outbox.mark_sending, run.claim, part.id)
    assert sending is not None
    assert (sending.state, sending.attempts, sending.holder) == ("sending", 1, hand.holder)
    assert hand.do(outbox.mark_sending, run.claim, part.id) is None


def test_a_part_of_another_run_is_not_begun(hand: Hand) -> None:
    [part] = hand.parts(hand.running())
    assert hand.do(outbox.mark_sending, hand.running().claim, part.id) is None


def test_a_part_that_was_dropped_is_not_begun(hand: Hand) -> None:
    run = hand.running()
    [part] = hand.parts(run)
    assert hand.do(outbox.drop_pending, run.id) == 1
    assert hand.do(outbox.mark_sending, run.claim, part.id) is None


def test_a_receipt_counts_whoever_holds_the_run(hand: Hand) -> None:
    part = begun(hand)
    hand.do(runs.end_live, part.run or 0, Close(Ending.WITHDRAWN, Cause.STOPPED, "stop"))
    assert hand.do(outbox.receive, attempt(part), "m1")
    assert (hand.part(part.id).state, hand.part(part.id).receipt) == ("sent", "m1")


@pytest.mark.parametrize("state", ["sending", "uncertain", "pending", "refused", "dropped"])
def test_a_receipt_counts_in_every_state_before_it(hand: Hand, state: str) -> None:
    part = begun(hand)
    hand.do(
        lambda tx: tx.run(
            f"UPDATE outbox SET state = '{state}', holder = "
            f"CASE WHEN '{state}' = 'sending' THEN holder END, scope = 'chat'"
        )
    )
    assert hand.do(outbox.receive, attempt(part), "m1")
    found = hand.part(part.id)
    assert (found.state, found.holder, found.scope) == (PartState.SENT, None, None)


def test_a_receipt_that_is_told_twice_changes_nothing(hand: Hand) -> None:
    part = begun(hand)
    assert hand.do(outbox.receive, attempt(part), "m1")
    assert hand.do(outbox.receive, attempt(part), "m1")
    assert hand.rows(f"SELECT receipt FROM {RECEIPTS} r") == [("m1",)]


def test_a_second_receipt_is_kept_and_reported(hand: Hand) -> None:
    part = begun(hand)
    assert hand.do(outbox.receive, attempt(part), "m1")
    assert not hand.do(outbox.receive, Attempt(part.id, 2), "m2")
    assert hand.rows("SELECT receipt, attempt FROM receipts ORDER BY receipt") == [
        ("m1", 1),
        ("m2", 2),
    ]
    assert hand.part(part.id).receipt == "m1"


OUTCOMES = {
    "not_sent": lambda tx, tried: outbox.not_sent(tx, tried, 5.0, "refused to connect", ""),
    "refuse": lambda tx, tried: outbox.refuse(tx, tried, Scope.CHAT, "blocked", "403"),
    "doubt": lambda tx, tried: outbox.doubt(tx, tried, "a time-out"),
}
LEADS_TO = {"not_sent": "pending", "refuse": "refused", "doubt": "uncertain"}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_is_written_on_its_attempt(hand: Hand, outcome: str) -> None:
    part = begun(hand)
    assert hand.do(OUTCOMES[outcome], attempt(part))
    assert (hand.part(part.id).state, hand.part(part.id).holder) == (LEADS_TO[outcome], None)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_that_comes_after_the_receipt_changes_nothing(hand: Hand, outcome: str) -> None:
    part = begun(hand)
    hand.do(outbox.receive, attempt(part), "m1")
    assert not hand.do(OUTCOMES[outcome], attempt(part))
    assert hand.part(part.id).state is PartState.SENT


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_of_an_earlier_attempt_changes_nothing(hand: Hand, outcome: str) -> None:
    run = hand.running()
    [part] = hand.parts(run, begun=True)
    hand.do(outbox.not_sent, attempt(part), 0.0, "refused to connect", "")
    again = hand.do(outbox.mark_sending, run.claim, part.id)
    assert again is not None
    assert not hand.do(OUTCOMES[outcome], attempt(part))
    assert hand.part(part.id) == again


@pytest.mark.parametrize("proof", ["not_sent", "refuse"])
def test_a_proof_that_comes_after_the_attempt_was_doubted_still_counts(
    hand: Hand, proof: str
) -> None:
    part = begun(hand)
    hand.do(outbox.doubt, attempt(part), "the process died")
    hand.do(outbox.looked, attempt(part))
    assert not hand.do(OUTCOMES["doubt"], attempt(part))
    assert not hand.do(OUTCOMES[proof], Attempt(part.id, part.attempts + 1))
    assert hand.do(OUTCOMES[proof], attempt(part))
    assert hand.part(part.id).state == LEADS_TO[proof]


def test_a_part_that_was_proven_not_sent_waits_for_its_time(hand: Hand) -> None:
    hand.stop_time()
    part = begun(hand)
    hand.do(outbox.not_sent, attempt(part), 30.0, "limited", "429")
    assert hand.part(part.id).not_before == pytest.approx(hand.clock.wall() + 30, abs=0.01)


def test_a_resend_of_what_moved_on_is_lost(hand: Hand) -> None:
    part = begun(hand)
    assert not hand.do(outbox.resend, part.id, part.attempts)
    hand.do(outbox.doubt, attempt(part), "a time-out")
    assert not hand.do(outbox.resend, part.id, part.attempts + 1)
    assert hand.do(outbox.resend, part.id, part.attempts)
    assert not hand.do(outbox.resend, part.id, part.attempts)
    assert (hand.part(part.id).state, hand.part(part.id).resends) == ("pending", 1)


def test_a_resend_of_what_arrived_is_lost(hand: Hand) -> None:
    part = begun(hand)
    hand.do(outbox.receive, attempt(part), "m1")
    assert not hand.do(outbox.resend, part.id, part.attempts, standalone=True)


def test_a_look_after_the_receipt_counts_nothing(hand: Hand) -> None:
    part = begun(hand)
    hand.do(outbox.doubt, attempt(part), "a time-out")
    assert hand.do(outbox.looked, attempt(part))
    hand.do(outbox.receive, attempt(part), "m1")
    assert not hand.do(outbox.looked, attempt(hand.part(part.id)))
    assert hand.part(part.id).looks == 1


def test_a_look_whose_commit_is_repeated_counts_once(hand: Hand) -> None:
    part = begun(hand)
    hand.do(outbox.doubt, attempt(part), "a time-out")
    assert [hand.do(outbox.looked, attempt(part)) for _ in range(2)] == [True, False]
    assert hand.part(part.id).looks == 1


def test_b143_a_step_of_the_wait_for_a_status_counts_while_somebody_listens(hand: Hand) -> None:
    part = begun(hand)
    hand.do(outbox.doubt, attempt(part), "a time-out")
    steps = [hand.do(outbox.wait_on, attempt(part), 20.0, LEASE) for _ in range(2)]
    assert steps == [True, False]
    counted = hand.part(part.id)
    assert counted.looks == 1
    assert counted.not_before > counted.started_at + 19.0
    hand.mark_dead(hand.holder)
    hand.new_holder("host/2", role="worker")
    assert hand.do(outbox.wait_on, replace(attempt(part), looks=1), 20.0, LEASE)
    assert hand.part(part.id).looks == 1
    assert hand.part(part.id).state is PartState.UNCERTAIN


def test_what_an_ended_run_had_not_begun_is_dropped_and_nothing_else(hand: Hand) -> None:
    run = hand.running()
    hand.parts(run, "one", "two", "three", begun=True)
    to, body = outbox.PartOwner(hand.account, run.chat, run.id), PartBody("a note", "{}")
    notices = [
        hand.do(outbox.post, to, PartKind.NOTICE, body, notice)
        for notice in (Notice.STILL_WORKING, Notice.UNCERTAIN)
    ]
    assert hand.do(outbox.drop_pending, run.id) == 3
    assert [p.state for p in hand.do(outbox.of_run, run.id)] == ["sending", "dropped", "dropped"]
    assert [hand.part(notice or 0).state for notice in notices] == ["dropped", "pending"]


def test_a_notice_of_a_run_is_said_once(hand: Hand) -> None:
    run = hand.running()
    to = outbox.PartOwner(hand.account, run.chat, run.id)
    body = PartBody("still working", "{}")
    said = (to, PartKind.NOTICE, body, Notice.STILL_WORKING)
    assert hand.do(outbox.post, *said) is not None
    assert hand.do(outbox.post, *said) is None


def arrived(hand: Hand, chat: int, kind: PartKind) -> None:
    """A message by itself reaches the chat."""
    claimed = hand.do(outbox.claim, hand.post(chat, kind), hand.holder, LEASE)
    assert claimed is not None
    hand.do(outbox.receive, attempt(claimed), "m1")


def test_words_of_an_operator_that_arrived_later_answer_the_chat(hand: Hand) -> None:
    run = hand.ready(chat := hand.new_chat())
    hand.post(chat, PartKind.OPERATOR, 2)
    assert not hand.do(gather_one, run).evidence.human_answered
    arrived(hand, chat, PartKind.OPERATOR)
    assert hand.do(gather_one, run).evidence.human_answered
    hand.advance(60)
    hand.do(runs.end_live, run.id, Close(Ending.ANSWERED, Cause.HUMAN_ANSWERED))
    assert not hand.do(gather_one, hand.ready(chat)).evidence.human_answered


def test_words_that_waited_to_leave_do_not_answer_what_came_meanwhile(hand: Hand) -> None:
    chat = hand.new_chat()
    words = hand.post(chat, PartKind.OPERATOR)
    hand.advance(1)
    run = hand.ready(chat)
    hand.advance(1)
    claimed = hand.do(outbox.claim, words, hand.holder, LEASE)
    assert claimed is not None
    hand.do(outbox.receive, attempt(claimed), "m1")
    assert not hand.do(gather_one, run).evidence.human_answered


def test_words_that_another_part_carries_are_not_sent_again(hand: Hand) -> None:
    run = hand.running()
    first, second = hand.parts(run, "one", "two", begun=True)
    hand.do(outbox.drop_others, run.id, first.id)
    hand.do(outbox.doubt, attempt(first), "no answer")
    for part in (first, second):
        hand.do(outbox.resend, part.id, hand.part(part.id).attempts, standalone=True)
    assert [hand.part(part.id).state for part in (first, second)] == ["pending", "dropped"]


def test_words_that_are_to_leave_are_no_older_when_the_clock_was_set(hand: Hand) -> None:
    hand.stop_time()
    hand.post(hand.new_chat(), PartKind.OPERATOR)
    hand.advance(60)
    for step in (172_800.0, -86_400.0):
        hand.advance(step)
        hand.do(outbox.follow_clock, step)
        age = hand.value("SELECT answerback_now() - created_at FROM outbox")
        assert age == pytest.approx(60, abs=0.01)


def test_a_note_of_ours_never_counts_as_a_humans_answer(hand: Hand) -> None:
    run = hand.ready(chat := hand.new_chat())
    arrived(hand, chat, PartKind.NOTICE)
    assert not hand.do(gather_one, run).evidence.human_answered


def test_a_look_up_must_not_adopt_what_the_chats_parts_have(hand: Hand) -> None:
    part = begun(hand)
    hand.do(outbox.receive, attempt(part), "m1")
    assert hand.do(outbox.owned_receipts, part.chat) == {"m1"}
    assert hand.do(outbox.owned_receipts, hand.new_chat()) == frozenset()


def test_a_standalone_part_is_claimed_once_and_only_by_the_living(hand: Hand) -> None:
    part = hand.post(hand.new_chat())
    gone = hand.new_holder("host/2")
    hand.mark_dead(gone)
    assert hand.do(outbox.claim, part, gone, LEASE) is None
    assert hand.do(outbox.claim, part, hand.holder, LEASE) is not None
    assert hand.do(outbox.claim, part, hand.holder, LEASE) is None


def test_a_part_of_a_run_is_not_claimed_as_a_standalone_one(hand: Hand) -> None:
    [part] = hand.parts(hand.running())
    assert hand.do(outbox.claim, part.id, hand.holder, LEASE) is None


def due(hand: Hand) -> list[int]:
    return [part.id for part in hand.do(outbox.due, [hand.account], 20)]


@pytest.mark.parametrize("later", ["doubted", "received", "begun", "same answer"])
def test_a_part_is_overtaken_by_what_may_be_shown_of_a_later_answer(hand: Hand, later: str) -> None:
    run = hand.running()
    first, second = hand.parts(run, "one", "two", begun=True)
    assert not hand.do(outbox.overtaken, first)
    if later == "same answer":
        behind = hand.do(outbox.mark_sending, run.claim, second.id)
        assert behind is not None
    else:
        hand.do(runs.settle, run.claim, Close(Ending.UNCERTAIN, Cause.UNCONFIRMED))
        behind = hand.parts(hand.running(chat=run.chat), begun=True)[0]
    if later == "doubted":
        hand.do(outbox.doubt, attempt(behind), "the process died")
    elif later == "received":
        hand.do(outbox.receive, attempt(behind), "m1")
    assert hand.do(outbox.overtaken, first)
    assert not hand.do(outbox.overtaken, behind)
    assert not hand.do(outbox.overtaken, replace(first, chat=hand.new_chat()))


def test_words_of_others_and_answers_that_have_not_left_overtake_nothing(hand: Hand) -> None:
    run = hand.running()
    [first] = hand.parts(run, begun=True)
    note = hand.do(outbox.claim, hand.post(run.chat), hand.holder, LEASE)
    assert note is not None
    hand.do(outbox.receive, attempt(note), "m1")
    hand.do(runs.settle, run.claim, Close(Ending.UNCERTAIN, Cause.UNCONFIRMED))
    hand.parts(hand.running(chat=run.chat))
    assert not hand.do(outbox.overtaken, first)


def test_only_what_waits_to_go_out_by_itself_is_kept_back(hand: Hand) -> None:
    part = begun(hand)
    assert part.run is not None
    assert not hand.do(outbox.keep_back, part.id, "it never left")
    hand.do(outbox.not_sent, attempt(part), 0.0, "no connection", "")
    assert not hand.do(outbox.keep_back, part.id, "it never left")
    assert hand.do(outbox.send_alone, part.run)
    assert hand.do(outbox.keep_back, part.id, "it never left")
    kept = hand.part(part.id)
    assert (kept.state, kept.standalone, kept.error) == ("uncertain", False, "it never left")
    assert not hand.do(outbox.keep_back, part.id, "it never left")


def test_standalone_parts_go_one_at_a_time_in_the_order_of_their_chat(hand: Hand) -> None:
    chat, other = hand.new_chat(), hand.new_chat()
    first, second, third = hand.post(chat), hand.post(chat), hand.post(other)
    assert due(hand) == [first, third]
    claimed = hand.do(outbox.claim, first, hand.holder, LEASE)
    assert claimed is not None
    assert due(hand) == [third]
    hand.do(outbox.receive, attempt(claimed), "m1")
    assert due(hand) == [second, third]


def test_a_standalone_part_waits_behind_what_its_chat_is_being_sent(hand: Hand) -> None:
    part = begun(hand)
    note = hand.post(part.chat)
    assert due(hand) == []
    hand.do(outbox.receive, attempt(part), "m1")
    assert due(hand) == [note]


def test_a_standalone_part_waits_for_its_platform(hand: Hand) -> None:
    chat = hand.new_chat()
    note = hand.post(chat)
    hand.do(chats.hold_back, chat, 60.0)
    assert due(hand) == []
    hand.advance(61)
    assert due(hand) == [note]
    hand.do(accounts.mark_down, hand.account, "the token was revoked")
    assert due(hand) == []


def test_what_a_dead_holder_was_sending_is_uncertain_if_no_run_looks_after_it(hand: Hand) -> None:
    kept = begun(hand)
    ended = begun(hand)
    hand.do(runs.end_live, ended.run or 0, Close(Ending.WITHDRAWN, Cause.STOPPED, "stop"))
    note = hand.do(outbox.claim, hand.post(hand.new_chat()), hand.holder, LEASE)
    assert note is not None
    assert hand.do(outbox.doubt_orphans) == []
    hand.mark_dead(hand.holder)
    assert sorted(hand.do(outbox.doubt_orphans)) == [ended.id, note.id]
    assert hand.part(kept.id).state is PartState.SENDING


def test_parts_that_were_looked_for_long_enough_do_not_hide_the_others(hand: Hand) -> None:
    doubted = []
    for _ in range(3):
        part = hand.do(outbox.claim, hand.post(hand.new_chat()), hand.holder, LEASE)
        assert part is not None
        hand.do(outbox.doubt, attempt(part), "a time-out")
        doubted.append(part)
    for part in doubted[:2]:
        hand.do(outbox.looked, attempt(part))
    found = hand.do(outbox.doubtful, hand.account, 1, 2)
    assert [part.id for part in found] == [doubted[2].id]
