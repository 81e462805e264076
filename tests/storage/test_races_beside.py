"""Races beside the runs: parts that two would send, chats that two make or merge."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from bot.domain.message import Address
from storage import chats, outbox, runs
from storage.chats import link
from storage.outbox import Attempt
from storage.statements.tx import Tx
from tests.limits import PATIENCE
from tests.storage.kit import LEASE, Hand, first_message
from tests.storage.rivals import first, outcome

both_ways = pytest.mark.parametrize("commits", [True, False], ids=["lost", "won"])


@both_ways
def test_a_standalone_part_is_sent_by_one_process(postgres_hand: Hand, commits: bool) -> None:
    hand = postgres_hand
    part, other = hand.post(hand.new_chat()), hand.new_holder("host/2")
    with first(hand) as rival:
        assert rival.do(outbox.claim, part, hand.holder, LEASE) is not None
        waiting = rival.rival(outbox.claim, part, other, LEASE)
        rival.commit() if commits else rival.rollback()
        assert (outcome(waiting) is None) is commits


@both_ways
def test_a_part_that_is_being_received_is_not_sent_again(
    postgres_hand: Hand, commits: bool
) -> None:
    hand = postgres_hand
    [part] = hand.parts(hand.running(), begun=True)
    tried = Attempt(part.id, part.attempts)
    hand.do(outbox.doubt, tried, "a time-out")
    with first(hand) as rival:
        assert rival.do(outbox.receive, tried, "m1")
        waiting = rival.rival(outbox.resend, part.id, part.attempts)
        rival.commit() if commits else rival.rollback()
        assert outcome(waiting) is not commits


@both_ways
def test_two_receipts_at_once_are_told_apart(postgres_hand: Hand, commits: bool) -> None:
    hand = postgres_hand
    [part] = hand.parts(hand.running(), begun=True)
    with first(hand) as rival:
        assert rival.do(outbox.receive, Attempt(part.id, 1), "m1")
        waiting = rival.rival(outbox.receive, Attempt(part.id, 2), "m2")
        rival.commit() if commits else rival.rollback()
        assert outcome(waiting) is not commits


@both_ways
def test_a_part_of_a_dead_holder_is_not_doubted_while_its_receipt_is_written(
    postgres_hand: Hand, commits: bool
) -> None:
    hand = postgres_hand
    part = hand.do(outbox.claim, hand.post(hand.new_chat()), hand.holder, LEASE)
    assert part is not None
    hand.mark_dead(hand.holder)
    with first(hand) as rival:
        rival.do(outbox.receive, Attempt(part.id, 1), "m1")
        waiting = rival.rival(outbox.doubt_orphans)
        rival.commit() if commits else rival.rollback()
        assert outcome(waiting) == ([] if commits else [part.id])


NAMES = ("whatsapp:+491500", "whatsapp:user-1")


def enter(tx: Tx, hand: Hand, *names: str) -> int:
    """A message arrives under these addresses; returns the chat that it is in."""
    addresses = [Address(name) for name in names]
    found = chats.locate(tx, hand.account, addresses)
    if found is None:
        found = first_message(tx, hand.account, addresses[0])
    return link(tx, hand.account, found, addresses).id


@both_ways
def test_two_messages_that_merge_the_same_chats_agree(postgres_hand: Hand, commits: bool) -> None:
    hand = postgres_hand
    kept, _ = (hand.new_chat(name) for name in NAMES)
    with first(hand) as rival:
        assert rival.do(enter, hand, *NAMES) == kept
        waiting = rival.rival(enter, hand, *reversed(NAMES))
        rival.commit() if commits else rival.rollback()
        assert outcome(waiting) == kept
    assert hand.value("SELECT count(*) FROM chats WHERE merged_into IS NULL") == 1


@both_ways
def test_a_message_that_found_the_younger_chat_before_the_merge_is_in_the_older_one(
    postgres_hand: Hand, commits: bool
) -> None:
    hand = postgres_hand
    kept, gone = (hand.new_chat(name) for name in NAMES)
    with first(hand) as rival:
        rival.do(enter, hand, *NAMES)
        waiting = rival.rival(chats.lock, gone)
        rival.commit() if commits else rival.rollback()
        assert outcome(waiting).id == (kept if commits else gone)


def test_first_messages_under_crossed_names_are_all_recorded(postgres_hand: Hand) -> None:
    hand, together = postgres_hand, Barrier(4)

    def arrive(number: int) -> int:
        names = [f"{name}-{number // 4}" for name in NAMES]
        together.wait(PATIENCE)
        return hand.do(enter, hand, *(names if number % 2 else reversed(names)))

    with ThreadPoolExecutor(4) as people:
        found = list(people.map(arrive, range(8)))
    for number, chat in enumerate(found):
        names = [Address(f"{name}-{number // 4}") for name in NAMES]
        assert hand.do(chats.lock, chat).id == hand.do(chats.locate, hand.account, names)


def test_a_claim_and_a_merge_at_once_leave_one_head_that_is_ready(postgres_hand: Hand) -> None:
    hand = postgres_hand
    kept, gone = (hand.new_chat(name) for name in NAMES)
    ready, other = hand.ready(kept), hand.running(gone)
    with first(hand) as rival:
        rival.do(enter, hand, *NAMES)
        assert hand.claim() == []
        rival.commit()
    assert hand.claim() == []
    assert [run.id for run in hand.do(runs.live_in_chat, kept)] == [other.id, ready.id]
