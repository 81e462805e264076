"""Moves of lists: each member moves or loses by itself, whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

import pytest

from bot.domain.delivery import PartState
from bot.domain.ending import Cause, Close, Ending
from bot.domain.reply import PartBody, PartKind
from bot.domain.run import Claim, Run
from storage import accounts, chats, outbox, runs
from storage.outbox import Attempt, NewParts, Notice, Part, PartOwner, Receipt
from storage.views.health.gauges import read_rates
from tests.storage.kit import Hand
from tests.storage.rivals import first

ANSWERED = Close(Ending.ANSWERED, Cause.DELIVERED)
NUMBER = 7


@pytest.fixture
def held(hand: Hand) -> Sequence[Run]:
    """Running runs of as many chats."""
    return [hand.running() for _ in range(NUMBER)]


def test_a_run_that_ended_badly_tells_its_cause_where_no_detail_is_kept(hand: Hand) -> None:
    run = hand.running()
    hand.do(runs.settle, run.claim, Close(Ending.FAILED, Cause.FAILURES))
    [(number, says, _)] = hand.do(read_rates, 60.0).errors
    assert (number, says) == (run.id, f"failed: {Cause.FAILURES.says}")
    assert Cause.FAILURES.says


def without(held: Sequence[Run], *lost: int) -> frozenset[int]:
    return frozenset(run.id for number, run in enumerate(held) if number not in lost)


def claims(hand: Hand, held: Sequence[Run]) -> Sequence[Claim]:
    """Their claims, the second and the fifth of which are lost."""
    hand.do(runs.give_back, held[1].claim, 0.0, "a test")
    hand.do(runs.end_live, held[4].id, Close(Ending.CANCELLED, Cause.OPERATOR))
    return [run.claim for run in held]


def answer(run: Run, *texts: str, begun: bool = False) -> NewParts:
    bodies = [PartBody(text, "{}") for text in texts]
    to = PartOwner(run.account, run.chat, run.id)
    return NewParts(to, PartKind.REPLY, bodies, run.holder if begun else None, " ".join(texts))


def begun(hand: Hand, held: Sequence[Run], *texts: str) -> Sequence[Part]:
    """The first parts of their answers, which are being sent."""
    new = [answer(run, *(texts or ("hi",)), begun=True) for run in held]
    return [parts[0] for parts in hand.do(outbox.store_parts_each, new).values()]


def test_workers_whose_runs_were_taken_lose_and_the_others_store_their_replies(
    hand: Hand, held: Sequence[Run]
) -> None:
    lost = claims(hand, held)
    assert hand.do(runs.mark_replied_each, lost) == without(held, 1, 4)
    replied = {run for (run,) in hand.rows("SELECT id FROM runs WHERE replied")}
    assert replied == without(held, 1, 4)


def test_workers_whose_runs_were_taken_lose_and_the_others_settle(
    hand: Hand, held: Sequence[Run]
) -> None:
    ends = [(claim, ANSWERED) for claim in claims(hand, held)]
    assert hand.do(runs.settle_each, ends) == without(held, 1, 4)
    answered = "SELECT id FROM runs WHERE ending = 'answered'"
    assert {run for (run,) in hand.rows(answered)} == without(held, 1, 4)


def test_each_ending_is_its_own(hand: Hand, held: Sequence[Run]) -> None:
    odd = Close(Ending.UNCERTAIN, Cause.UNCONFIRMED, "a time-out")
    ends = [(run.claim, odd if run.id % 2 else ANSWERED) for run in held]
    hand.do(runs.settle_each, ends)
    for run, (_, end) in zip(held, ends, strict=True):
        found = hand.find(run)
        assert (found.ending, found.cause, found.detail) == (end.ending, end.cause, end.words)


def test_the_oldest_waiter_of_each_chat_becomes_its_head(hand: Hand) -> None:
    quiet, busy, paused, empty = (hand.new_chat() for _ in range(4))
    hand.waiting(quiet, order_at=20.0)
    oldest = hand.waiting(quiet, order_at=10.0)
    hand.running(busy)
    for chat in (busy, paused):
        hand.waiting(chat)
    hand.do(chats.pause, paused, None)
    promoted = hand.do(runs.promote_each, [paused, busy, empty, quiet])
    assert [run.id for run in promoted.values()] == [oldest.id]
    assert hand.do(runs.promote_each, [paused, busy, empty, quiet]) == {}


def test_the_next_of_a_chat_that_goes_on_begins_at_once_and_the_others_become_ready(
    hand: Hand,
) -> None:
    here, there = hand.new_chat(), hand.new_chat()
    for chat in (here, there):
        hand.waiting(chat)
    moved = hand.do(runs.promote_each, [here, there], [here], hand.claimant())
    assert [(moved[chat].state, moved[chat].attempts) for chat in (here, there)] == [
        ("running", 1),
        ("ready", 0),
    ]
    begun = moved[here]
    assert begun == hand.find(begun)
    assert (begun.holder, begun.fence) == (hand.holder, 1)
    assert begun.deadline_at is not None
    hand.do(runs.hold, begun.claim)


def gone(hand: Hand, _waiter: Run) -> None:
    hand.mark_dead(hand.holder)


def kept(hand: Hand, waiter: Run) -> None:
    hand.do(accounts.mark_down, waiter.account, "a test")
    hand.do(lambda tx: tx.run(f"UPDATE runs SET not_before = 1e12 WHERE id = {waiter.id}"))


def suspect(hand: Hand, waiter: Run) -> None:
    change = f"UPDATE runs SET quarantined = true, deaths = 2 WHERE id = {waiter.id}"
    hand.do(lambda tx: tx.run(change))


def later(hand: Hand, waiter: Run) -> None:
    change = f"UPDATE runs SET not_before = not_before + 60 WHERE id = {waiter.id}"
    hand.do(lambda tx: tx.run(change))


@pytest.mark.parametrize("reason", [gone, kept, suspect, later])
def test_whom_no_claim_would_take_becomes_ready_also_where_its_chat_goes_on(
    hand: Hand, reason: Callable[[Hand, Run], None]
) -> None:
    chat = hand.new_chat()
    waiter = hand.waiting(chat)
    reason(hand, waiter)
    moved = hand.do(runs.promote_each, [chat], [chat], hand.claimant())
    assert (moved[chat].id, moved[chat].state, moved[chat].holder) == (waiter.id, "ready", None)


def test_answers_of_several_runs_are_stored_with_their_parts_in_order(
    hand: Hand, held: Sequence[Run]
) -> None:
    new = [answer(run, "one", "two", "three", begun=run is held[0]) for run in held]
    stored = hand.do(outbox.store_parts_each, new)
    assert set(stored) == without(held)
    for run in held:
        assert [part.body.text for part in stored[run.id]] == ["one", "two", "three"]
        assert stored[run.id] == hand.do(outbox.of_run, run.id)
    states = [part.state for run in held for part in stored[run.id]]
    assert states == [PartState.SENDING] + [PartState.PENDING] * (3 * NUMBER - 1)


def test_answers_that_are_stored_again_stay_as_they_are(hand: Hand, held: Sequence[Run]) -> None:
    before = hand.do(outbox.store_parts_each, [answer(held[0], "one", "two", begun=True)])
    again = [answer(run, "other", "words", begun=True) for run in held]
    after = hand.do(outbox.store_parts_each, again)
    assert after[held[0].id] == before[held[0].id]
    assert [part.body.text for part in after[held[1].id]] == ["other", "words"]
    assert hand.do(outbox.reply, held[0].id) == "one two"
    assert hand.do(outbox.reply, held[1].id) == "other words"


def test_receipts_are_recorded_on_those_parts_that_had_none(
    hand: Hand, held: Sequence[Run]
) -> None:
    parts = begun(hand, held)
    hand.do(outbox.receive, Attempt(parts[1].id, 1), "its own")
    hand.do(outbox.doubt, Attempt(parts[2].id, 1), "a time-out")
    taken = [Receipt(Attempt(part.id, 1), f"m{part.id}", reported=False) for part in parts]
    moved = hand.do(outbox.receive_first, taken)
    assert moved == {part.id for part in parts if part is not parts[1]}
    for part in parts:
        receipt = "its own" if part is parts[1] else f"m{part.id}"
        assert (hand.part(part.id).state, hand.part(part.id).receipt) == ("sent", receipt)


def test_a_receipt_of_which_a_platform_will_speak_leads_to_its_part(
    hand: Hand, held: Sequence[Run]
) -> None:
    parts = begun(hand, held)
    taken = [Receipt(Attempt(part.id, 1), f"m{part.id}", part is parts[0]) for part in parts]
    hand.do(outbox.receive_first, taken)
    found = hand.do(outbox.by_receipt, hand.account, f"m{parts[0].id}")
    assert found is not None
    assert found.id == parts[0].id


@pytest.mark.parametrize("reported", [True, False])
def test_a_further_receipt_of_a_part_is_a_double_and_the_first_one_no_news(
    hand: Hand, held: Sequence[Run], reported: bool
) -> None:
    [part] = begun(hand, held[:1])
    hand.do(outbox.receive_first, [Receipt(Attempt(part.id, 1), "m1", reported)])
    assert hand.do(outbox.receive, Attempt(part.id, 1), "m1")
    assert not hand.do(outbox.receive, Attempt(part.id, 1), "m2")
    assert hand.do(outbox.receive, Attempt(part.id, 1), "m2")
    assert hand.do(outbox.owned_receipts, part.chat) == {"m1", "m2"}
    assert hand.part(part.id).receipt == "m1"


def test_parts_begin_that_did_not_move_on_before(hand: Hand, held: Sequence[Run]) -> None:
    stored = hand.do(outbox.store_parts_each, [answer(run, "hi") for run in held])
    marked = [(run.claim, stored[run.id][0].id) for run in held]
    hand.do(outbox.drop_pending, held[1].id)
    hand.do(outbox.mark_sending, *marked[2])
    sending = hand.do(outbox.mark_sending_each, marked)
    assert {part.run for part in sending.values()} == without(held, 1, 2)
    assert {(part.state, part.attempts, part.holder) for part in sending.values()} == {
        (PartState.SENDING, 1, hand.holder)
    }


def test_the_replies_of_held_runs_are_read_and_of_no_others(
    hand: Hand, held: Sequence[Run]
) -> None:
    hand.do(outbox.store_parts_each, [answer(run, "one", "two") for run in held])
    to = PartOwner(hand.account, held[0].chat, held[0].id)
    hand.do(outbox.store_parts, to, PartKind.APOLOGY, [PartBody("sorry", "{}")])
    hand.waiting(held[2].chat)
    found = hand.do(outbox.of_held, claims(hand, held))
    assert set(found) == without(held, 1, 4)
    assert [run for run, reply in found.items() if reply.waits] == [held[2].id]
    for run in (held[0], held[6]):
        parts = [part.facts for part in hand.do(outbox.of_run, run.id) if part.kind == "reply"]
        assert found[run.id].parts == sorted(parts, key=attrgetter("number"))


def test_late_notices_of_several_runs_are_dropped(hand: Hand, held: Sequence[Run]) -> None:
    for run in held:
        to = PartOwner(hand.account, run.chat, run.id)
        for notice in (Notice.STILL_WORKING, Notice.RETRIED):
            hand.do(outbox.post, to, PartKind.NOTICE, PartBody("a note", "{}"), notice)
    hand.do(outbox.drop_notice_each, [run.id for run in held[:3]], Notice.STILL_WORKING)
    dropped = "SELECT run, part FROM outbox WHERE state = 'dropped' ORDER BY run"
    assert hand.rows(dropped) == [(run.id, Notice.STILL_WORKING) for run in held[:3]]


def test_a_list_of_nobody_is_no_statement(hand: Hand) -> None:
    for move in (runs.settle_each, runs.promote_each, runs.mark_replied_each,
                 outbox.store_parts_each, outbox.receive_first, outbox.mark_sending_each,
                 outbox.of_held):  # fmt: skip
        assert not hand.do(move, [])


def test_chats_that_somebody_has_locked_are_left_out_without_waiting(postgres_hand: Hand) -> None:
    hand = postgres_hand
    hand.stop_time()
    of = [hand.new_chat() for _ in range(4)]
    with first(hand) as rival:
        rival.do(chats.lock, of[2])
        locked, now = hand.do(chats.lock_each, of[::-1])
    assert list(locked) == [of[0], of[1], of[3]]
    assert now == pytest.approx(hand.clock.wall(), abs=0.01)
    assert list(hand.do(chats.lock_each, of)[0]) == of


def test_a_chat_that_became_part_of_another_is_left_out(hand: Hand) -> None:
    kept, gone = hand.new_chat(), hand.new_chat()
    hand.do(lambda tx: tx.run(f"UPDATE chats SET merged_into = {kept} WHERE id = {gone}"))
    assert list(hand.do(chats.lock_each, [gone, kept])[0]) == [kept]
