"""Two chats that turn out to be one conversation: nothing is lost, one head at a time."""

from __future__ import annotations

import pytest

from bot.domain.ending import Cause, Close, Ending
from bot.domain.message import Address
from bot.domain.reply import PartKind
from bot.domain.run import Run, RunState
from storage import chats, inbox, runs
from storage.chats import link, requests
from storage.operators import hand_replies, notes
from storage.statements.tx import Tx
from storage.views.chats import last_ids
from tests.storage.kit import Hand, message, store


@pytest.fixture
def pair(hand: Hand) -> tuple[int, int]:
    """The older and the younger chat of one person."""
    return hand.new_chat("whatsapp:+491500"), hand.new_chat("whatsapp:user-1")


def merged(hand: Hand) -> int:
    """A message arrives that names both addresses; returns the chat that it is in."""

    def arrive(tx: Tx) -> int:
        addresses = [Address("whatsapp:user-1"), Address("whatsapp:+491500")]
        found = chats.locate(tx, hand.account, addresses)
        assert found is not None
        return link(tx, hand.account, found, addresses).id

    return hand.do(arrive)


def end(hand: Hand, run: Run) -> int | None:
    """Its worker settles the run and promotes the next; returns that one."""

    def settle(tx: Tx) -> int | None:
        chats.lock(tx, run.chat)
        runs.settle(tx, run.claim, Close(Ending.ANSWERED, Cause.DELIVERED))
        return runs.promote(tx, run.chat)

    return hand.do(settle)


def test_both_addresses_lead_to_the_older_chat(hand: Hand, pair: tuple[int, int]) -> None:
    kept, gone = pair
    assert merged(hand) == kept
    for address in ("whatsapp:+491500", "whatsapp:user-1"):
        assert hand.do(chats.locate, hand.account, [Address(address)]) == kept
    assert hand.do(chats.lock, gone).id == kept
    assert hand.do(chats.get, gone).id == kept


def test_the_older_chat_can_take_the_younger_ones_address(
    hand: Hand, pair: tuple[int, int]
) -> None:
    kept, _ = pair
    merged(hand)
    hand.heard(kept, hand.clock.wall(), "whatsapp:user-1")
    assert hand.do(chats.get, kept).address == Address("whatsapp:user-1")


def test_a_run_that_runs_in_the_younger_chat_goes_on_as_the_head(
    hand: Hand, pair: tuple[int, int]
) -> None:
    kept, gone = pair
    running = hand.running(gone)
    waiter, ready = hand.waiting(gone, order_at=5.0), hand.ready(kept)
    merged(hand)
    assert hand.find(running).state is RunState.RUNNING
    assert hand.find(ready).state is RunState.WAITING
    hand.do(runs.hold, running.claim)
    assert end(hand, running) == waiter.id
    assert {chat for (chat,) in hand.rows("SELECT chat FROM runs")} == {kept}


def test_two_that_run_at_once_both_finish_and_nobody_is_promoted_before(
    hand: Hand, pair: tuple[int, int]
) -> None:
    kept, gone = pair
    older, younger = hand.running(kept), hand.running(gone)
    waiter = hand.waiting(gone)
    merged(hand)
    assert {r.id for r in hand.do(runs.live_in_chat, kept)} == {older.id, younger.id, waiter.id}
    assert end(hand, older) is None
    assert hand.find(waiter).state is RunState.WAITING
    assert end(hand, younger) == waiter.id
    assert {chat for (chat,) in hand.rows("SELECT chat FROM runs")} == {kept}


def test_the_younger_of_two_may_end_first_as_well(hand: Hand, pair: tuple[int, int]) -> None:
    kept, gone = pair
    older, younger = hand.running(kept), hand.running(gone)
    waiter = hand.waiting(kept)
    merged(hand)
    assert end(hand, younger) is None
    assert end(hand, older) == waiter.id


def test_what_the_second_of_two_sent_is_in_the_one_history(
    hand: Hand, pair: tuple[int, int]
) -> None:
    kept, gone = pair
    hand.running(kept)
    younger = hand.running(gone)
    merged(hand)
    hand.parts(younger, "an answer")
    assert end(hand, younger) is None
    assert hand.rows("SELECT chat FROM outbox") == [(kept,)]


def test_a_stop_in_the_conversation_reaches_both_that_run(
    hand: Hand, pair: tuple[int, int]
) -> None:
    kept, gone = pair
    both = {hand.running(kept).id, hand.running(gone).id}
    merged(hand)
    live = hand.do(runs.live_in_chat, kept)
    assert {run.id for run in live} == both
    for run in live:
        assert hand.do(runs.end_live, run.id, Close(Ending.WITHDRAWN, Cause.STOPPED, "stop"))
    assert hand.rows("SELECT DISTINCT chat, state FROM runs") == [(kept, "ended")]


def test_the_second_of_two_survives_the_death_of_its_holder(
    hand: Hand, pair: tuple[int, int]
) -> None:
    kept, gone = pair
    older, younger = hand.running(kept), hand.running(gone, hand.new_holder("host/2"))
    merged(hand)
    hand.mark_dead(younger.holder or 0)
    [released] = hand.do(runs.release_dead, kept)
    assert released.run == younger.id
    [again] = hand.claim()
    assert again.id == younger.id
    assert end(hand, older) is None
    assert end(hand, again) is None
    assert {state for (state,) in hand.rows("SELECT state FROM runs")} == {"ended"}


def test_the_second_of_two_waits_when_the_conversation_is_paused(
    hand: Hand, pair: tuple[int, int]
) -> None:
    kept, gone = pair
    older, younger = hand.running(kept), hand.running(gone)
    merged(hand)
    hand.do(chats.pause, kept, None)
    hand.do(runs.give_back, younger.claim, 0.0, "paused")
    assert hand.find(younger).state is RunState.WAITING
    assert hand.claim() == []
    assert end(hand, older) is None
    assert hand.do(chats.resume, kept)
    assert hand.do(runs.promote, kept) == younger.id


def test_a_chat_that_was_merged_twice_is_found_under_every_name(hand: Hand) -> None:
    first, second, third = (hand.new_chat(name) for name in ("a", "b", "c"))
    running = [hand.running(chat) for chat in (first, second, third)]

    def join(tx: Tx, *names: str) -> int:
        addresses = [Address(name) for name in names]
        found = chats.locate(tx, hand.account, addresses)
        assert found is not None
        return link(tx, hand.account, found, addresses).id

    assert hand.do(join, "b", "c") == second
    assert hand.do(join, "a", "b") == first
    assert hand.do(chats.lock, third).id == first
    assert hand.do(chats.locate, hand.account, [Address("c")]) == first
    assert {r.id for r in hand.do(runs.live_in_chat, first)} == {run.id for run in running}
    waiter = hand.waiting(first)
    assert [end(hand, run) for run in running] == [None, None, waiter.id]


def test_a_third_merge_while_a_run_of_the_first_goes_on_leaves_one_head(hand: Hand) -> None:
    first, second, third = (hand.new_chat(name) for name in ("a", "b", "c"))
    ready, ends, goes_on = hand.ready(first), hand.running(second), hand.running(third)

    def join(tx: Tx, *names: str) -> int:
        addresses = [Address(name) for name in names]
        found = chats.locate(tx, hand.account, addresses)
        assert found is not None
        return link(tx, hand.account, found, addresses).id

    hand.do(join, "b", "c")
    end(hand, ends)
    hand.do(join, "a", "b")
    assert hand.claim() == []
    assert end(hand, goes_on) == ready.id


def test_three_chats_of_one_message_become_one_with_one_head(hand: Hand) -> None:
    names = ("a", "b", "c")
    known = [hand.new_chat(name) for name in names]
    ready = [hand.ready(chat) for chat in known]

    def arrive(tx: Tx) -> int:
        return link(tx, hand.account, known[1], [Address(name) for name in names]).id

    assert hand.do(arrive) == known[0]
    assert [run.chat for run in hand.claim()] == [known[0]]
    assert len(hand.do(runs.live_in_chat, known[0])) == len(ready)


def test_what_was_known_of_the_person_is_kept(hand: Hand, pair: tuple[int, int]) -> None:
    hand.stop_time()
    kept, gone = pair
    hand.heard(gone, 1_000.0, "whatsapp:user-1")
    hand.do(chats.opt_out, gone, out=True)
    hand.do(chats.hold_back, gone, 60.0)
    merged(hand)
    chat = hand.do(chats.get, kept)
    assert chat.last_inbound_at == 1_000.0
    assert chat.opted_out_at is not None
    assert chat.not_before == pytest.approx(hand.clock.wall() + 60, abs=0.01)


def test_merging_twice_changes_nothing(hand: Hand, pair: tuple[int, int]) -> None:
    kept, _ = pair
    merged(hand)
    before = hand.rows("SELECT * FROM chats ORDER BY id")
    assert merged(hand) == kept
    assert hand.rows("SELECT * FROM chats ORDER BY id") == before


def test_notes_and_the_authors_of_replies_go_along(hand: Hand, pair: tuple[int, int]) -> None:
    kept, gone = pair
    hand.do(notes.add, gone, "ann", "pays late")
    hand.do(hand_replies.record, gone, [hand.post(gone, PartKind.OPERATOR)], "ann", "d", "k")
    merged(hand)
    assert [note.text for note in hand.do(notes.listed, kept, 10)] == ["pays late"]
    found = hand.do(hand_replies.under, "k")
    assert found is not None
    assert (found.chat, found.who) == (kept, "ann")


def test_what_was_forgotten_in_either_chat_stays_so_in_both(
    hand: Hand, pair: tuple[int, int]
) -> None:
    kept, gone = pair
    ours, theirs = (
        hand.do(store, hand.account, chat, message(number))
        for number, chat in ((801, kept), (802, gone))
    )
    hand.do(inbox.blank, [theirs])
    hand.do(requests.forgotten_by_hand, hand.account, gone, hand.do(last_ids))
    merged(hand)
    assert hand.do(requests.is_forgotten, kept, theirs)
    assert not hand.do(requests.is_forgotten, kept, ours), "nobody forgot it"
