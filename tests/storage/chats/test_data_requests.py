"""The moves of a person's wish about their data, each won once."""

from __future__ import annotations

from bot.domain.commands import Command
from storage.chats import requests
from storage.views.chats import last_ids
from tests.storage.kit import Hand, message, store

WITHIN = 600.0


def ask(hand: Hand, chat: int, what: Command) -> bool | None:
    return hand.do(requests.ask, hand.account, chat, what, WITHIN)


def test_it_is_asked_back_confirmed_and_done_once(hand: Hand) -> None:
    chat = hand.new_chat()
    assert ask(hand, chat, Command.FORGET) is False
    assert ask(hand, chat, Command.EXPORT) is False
    hand.advance(WITHIN + 1)
    assert ask(hand, chat, Command.FORGET) is False
    meant = hand.do(store, hand.account, chat, message(1))
    assert ask(hand, chat, Command.FORGET) is True
    assert ask(hand, chat, Command.FORGET) is None
    later = hand.do(store, hand.account, chat, message(2))
    [request] = hand.do(requests.to_do, [hand.account], 10)
    assert (request.chat, request.what, request.until.message) == (chat, Command.FORGET, meant)
    assert hand.do(requests.is_forgotten, chat, meant)
    assert not hand.do(requests.is_forgotten, chat, later)
    assert [hand.do(requests.finish, request) for _ in range(2)] == [True, False]
    assert hand.do(requests.to_do, [hand.account], 10) == []
    assert ask(hand, chat, Command.FORGET) is False
    assert hand.do(requests.is_forgotten, chat, meant), "asking again brings nothing back"


def test_what_an_operator_has_forgotten_is_known_as_such(hand: Hand) -> None:
    chat = hand.new_chat()
    before = hand.do(store, hand.account, chat, message(1))
    hand.do(requests.forgotten_by_hand, hand.account, chat, hand.do(last_ids))
    after = hand.do(store, hand.account, chat, message(2))
    known = [hand.do(requests.is_forgotten, chat, number) for number in (before, after)]
    assert known == [True, False]


def test_of_an_old_database_no_copy_is_sent_but_who_wished_it_is_forgotten(hand: Hand) -> None:
    chat = hand.new_chat()
    for what in (Command.FORGET, Command.EXPORT):
        ask(hand, chat, what)
        assert ask(hand, chat, what) is True
    hand.do(requests.drop_exports)
    assert [one.what for one in hand.do(requests.to_do, [hand.account], 10)] == [Command.FORGET]
