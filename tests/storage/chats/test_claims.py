"""A guest's chat becomes a user's: once, whoever else is at it in the same moment."""

from __future__ import annotations

import pytest

from bot.domain.message import Address
from storage import chats, claims, ended_sessions, secrets
from storage.statements.tx import Tx
from storage.views import sessions
from tests.limits import PATIENCE
from tests.storage.kit import Hand, first_message
from tests.storage.rivals import First, first

GUEST, USER, OTHER = Address("guest:1"), Address("user:ada"), Address("user:bob")


def chat_at(hand: Hand, address: Address) -> int | None:
    return hand.do(chats.locate, hand.account, [address])


def claim(hand: Hand, user: Address = USER, guest: Address = GUEST) -> tuple[Address, bool]:
    return hand.do(claims.claim, hand.account, guest, user)


@pytest.mark.parametrize("known", [[], [GUEST], [USER], [GUEST, USER], [USER, GUEST]])
def test_b160_after_a_claim_both_addresses_lead_to_one_chat_that_is_the_users(
    hand: Hand, known: list[Address]
) -> None:
    before = [hand.do(first_message, hand.account, address) for address in known]
    assert claim(hand) == (USER, True)
    chat = chat_at(hand, GUEST)
    assert chat is not None
    assert chat == chat_at(hand, USER) == min(before, default=chat)
    assert hand.do(chats.get, chat).address == USER
    assert hand.value("SELECT count(*) FROM chats WHERE merged_into IS NULL") == 1


def test_b160_who_claims_again_changes_nothing_and_who_comes_late_gets_nothing(hand: Hand) -> None:
    hand.do(first_message, hand.account, GUEST)
    claim(hand)
    before = hand.rows("SELECT * FROM chats"), hand.rows("SELECT * FROM events")
    assert claim(hand) == (USER, False)
    assert claim(hand, OTHER) == (USER, False)
    assert (hand.rows("SELECT * FROM chats"), hand.rows("SELECT * FROM events")) == before
    assert chat_at(hand, OTHER) is None


def test_b160_a_user_takes_over_the_chats_of_two_guests(hand: Hand) -> None:
    second = Address("guest:2")
    for guest in (GUEST, second):
        hand.do(first_message, hand.account, guest)
        assert claim(hand, guest=guest) == (USER, True)
    assert chat_at(hand, GUEST) == chat_at(hand, second) == chat_at(hand, USER)


def test_b160_of_two_claims_at_once_one_is_made(postgres_hand: Hand) -> None:
    hand = postgres_hand
    hand.do(first_message, hand.account, GUEST)
    with first(hand) as one:
        assert one.do(claims.claim, hand.account, GUEST, USER) == (USER, True)
        other = one.rival(claims.claim, hand.account, GUEST, OTHER)
        one.commit()
        assert other.result(PATIENCE) == (USER, False)
    assert chat_at(hand, OTHER) is None


@pytest.mark.parametrize("user_is_known", [False, True])
def test_b160_a_guests_first_message_in_the_moment_of_the_claim_is_in_the_users_chat(
    postgres_hand: Hand, user_is_known: bool
) -> None:
    hand = postgres_hand
    if user_is_known:
        hand.do(first_message, hand.account, USER)

    def message_first(one: First) -> int:
        chat = one.do(first_message, hand.account, GUEST)
        claiming = one.rival(claims.claim, hand.account, GUEST, USER)
        one.commit()
        assert claiming.result(PATIENCE) == (USER, True)
        return chat

    with first(hand) as one:
        message_first(one)
    assert chat_at(hand, GUEST) == chat_at(hand, USER)


def test_b160_a_guests_first_message_that_waits_for_the_claim_is_in_the_users_chat(
    postgres_hand: Hand,
) -> None:
    hand = postgres_hand
    with first(hand) as one:
        one.do(claims.claim, hand.account, GUEST, USER)
        writing = one.rival(first_message, hand.account, GUEST)
        one.commit()
        assert writing.result(PATIENCE) == chat_at(hand, USER)


def test_a_session_is_over_when_it_was_ended_or_its_guest_became_a_user(hand: Hand) -> None:
    claim(hand)
    hand.do(ended_sessions.end, "two", hand.clock.wall() + 60)
    asked = [(GUEST, "one"), (USER, "two"), (USER, "three"), (Address("guest:2"), "four")]
    assert hand.do(sessions.over, hand.account, asked) == {"one", "two"}
    assert hand.do(sessions.over, hand.new_account("another"), asked) == {"two"}


def test_an_ended_session_is_remembered_until_its_token_runs_out(hand: Hand) -> None:
    hand.do(ended_sessions.end, "one", hand.clock.wall() + 60)
    hand.do(ended_sessions.end, "one", hand.clock.wall() + 60)
    hand.advance(61)
    hand.do(ended_sessions.end, "two", hand.clock.wall() + 60)
    assert hand.rows("SELECT session FROM ended_sessions") == [("two",)]


def test_a_secret_is_made_once(hand: Hand) -> None:
    def ensure(tx: Tx, fresh: str) -> str:
        return secrets.ensure(tx, "web", fresh)

    assert hand.do(ensure, "first") == hand.do(ensure, "second") == "first"
