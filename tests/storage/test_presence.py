"""Operators who look at the same chat see each other, as long as their pages are open."""

from __future__ import annotations

from storage.operators import presence
from tests.storage.kit import Hand

LEASE = 15.0


def test_each_sees_the_others_and_not_its_own_page(hand: Hand) -> None:
    chat, other = hand.new_chat(), hand.new_chat()
    hand.do(presence.attend, chat, "page-1", "ann", LEASE)
    hand.do(presence.attend, chat, "page-2", "ben", LEASE)
    hand.do(presence.attend, chat, "page-3", "ben", LEASE)
    hand.do(presence.attend, other, "page-4", "cleo", LEASE)
    assert hand.do(presence.others, chat, "page-1") == ["ben"]
    assert hand.do(presence.others, chat, "page-2") == ["ann", "ben"]
    assert hand.do(presence.others, other, "page-4") == []


def test_a_page_that_is_gone_is_seen_no_more(hand: Hand) -> None:
    chat = hand.new_chat()
    hand.stop_time()
    hand.do(presence.attend, chat, "closed", "ann", LEASE)
    hand.do(presence.attend, chat, "died", "ben", LEASE)
    hand.do(presence.leave, chat, "closed")
    assert hand.do(presence.others, chat, "mine") == ["ben"]
    hand.advance(LEASE - 1)
    hand.do(presence.attend, chat, "renewed", "cleo", LEASE)
    hand.advance(2.0)
    assert hand.do(presence.others, chat, "mine") == ["cleo"]


def test_rows_of_pages_that_died_do_not_pile_up(hand: Hand) -> None:
    chat = hand.new_chat()
    hand.stop_time()
    for number in range(3):
        hand.do(presence.attend, chat, f"died-{number}", "ann", LEASE)
    hand.advance(3 * LEASE)
    hand.do(presence.attend, chat, "new", "ann", LEASE)
    assert hand.rows("SELECT page FROM presence") == [("new",)]
