"""The journal as rows: numbers without a gap, projection, two journals that become one."""

from __future__ import annotations

from sqlalchemy import text

from bot.domain.clients.journal import ChatEvent, EventKind, NewEvent
from bot.domain.ending import Cause, Close, Ending
from bot.domain.message import Address
from storage import chats, inbox, journal, runs
from storage.inbox import NewMessage
from storage.statements.tx import Tx
from tests.storage.kit import Hand, message

_FOR_ALL = 10_000


def events(hand: Hand, chat: int, after: int = 0) -> list[ChatEvent]:
    return list(hand.do(journal.after, {chat: after}, _FOR_ALL).get(chat, ()))


def told(hand: Hand, chat: int) -> list[tuple[int, str]]:
    return [(event.n, event.kind.value) for event in events(hand, chat)]


def note(hand: Hand, chat: int, count: int = 1) -> int:
    def append(tx: Tx) -> int:
        chats.lock(tx, chat)
        return journal.append(tx, chat, [NewEvent(EventKind.MESSAGE)] * count)

    return hand.do(append)


def project(hand: Hand, chat: int) -> int | None:
    def move(tx: Tx) -> int | None:
        return journal.project(tx, chats.lock(tx, chat).id)

    return hand.do(move)


def say(tx: Tx, account: int, chat: int, run: int) -> None:
    inbox.store_messages(tx, [NewMessage(account, chat, message(1), "{}", run)])


def merged(hand: Hand, *addresses: str) -> int:
    old, new = map(Address, addresses)
    hand.do(chats.migrate, hand.account, old, new)
    found = hand.do(chats.locate, hand.account, [new])
    assert found is not None
    return found


def test_each_chat_counts_for_itself(hand: Hand) -> None:
    one, two = hand.new_chat(), hand.new_chat()
    assert [note(hand, one), note(hand, one, 3), note(hand, two)] == [1, 4, 1]
    assert [n for n, _ in told(hand, one)] == [1, 2, 3, 4]
    assert hand.do(journal.heads, [one, two, 99]) == {one: 4, two: 1}


def test_what_became_of_a_message_is_projected_once_whoever_moved_it(hand: Hand) -> None:
    chat = hand.new_chat()
    run = hand.ready(chat)
    hand.do(say, hand.account, chat, run.id)
    assert project(hand, chat) == 1
    assert project(hand, chat) is None
    [held] = hand.claim()
    assert held.id == run.id
    assert project(hand, chat) == 2
    hand.do(runs.end_live, run.id, Close(Ending.CANCELLED, Cause.OPERATOR))
    assert project(hand, chat) == 3
    assert project(hand, chat) is None
    assert told(hand, chat) == [(1, "accepted"), (2, "working"), (3, "withdrawn")]


def test_no_number_comes_again_when_one_backup_is_put_back_twice(hand: Hand) -> None:
    chat = hand.new_chat()
    note(hand, chat, 3)
    hand.do(journal.leave_gap)
    first = note(hand, chat, 5)
    hand.do(lambda tx: tx.execute(text("UPDATE followed SET n = 3")))  # as it is in the backup
    hand.advance(1)
    hand.do(journal.leave_gap)
    second = note(hand, chat)
    assert second > first
    assert second < 2**53  # a page counts no further


def test_two_journals_become_one_with_new_numbers_behind_a_gap(hand: Hand) -> None:
    kept, gone = hand.new_chat("guest:1"), hand.new_chat("user:1")
    note(hand, kept, 2)
    hand.advance(10)
    note(hand, gone, 3)
    hand.advance(10)
    note(hand, kept)
    hand.do(journal.see, gone, 3)
    assert merged(hand, "user:1", "guest:1") == kept
    assert [n for n, _ in told(hand, kept)] == [5, 6, 7, 8, 9, 10]
    times = [event.at for event in events(hand, kept)]
    assert times == sorted(times)
    assert told(hand, gone) == []
    assert hand.do(journal.unread, kept) == 6
    hand.do(journal.see, kept, 10)
    assert hand.do(journal.unread, kept) == 0
    assert note(hand, kept) == 11


def test_what_was_seen_in_both_journals_is_seen_in_the_one(hand: Hand) -> None:
    kept, gone = hand.new_chat("guest:1"), hand.new_chat("user:1")
    for chat in (kept, gone):
        hand.do(journal.see, chat, note(hand, chat, 2))
    merged(hand, "user:1", "guest:1")
    assert hand.do(journal.unread, kept) == 0
    note(hand, kept)
    assert hand.do(journal.unread, kept) == 1


def test_a_chat_without_a_journal_that_is_merged_leaves_the_other_as_it_is(hand: Hand) -> None:
    kept, gone = hand.new_chat("guest:1"), hand.new_chat("user:1")
    note(hand, kept, 2)
    merged(hand, "user:1", "guest:1")
    assert [n for n, _ in told(hand, kept)] == [1, 2]
    assert hand.do(journal.heads, [kept, gone]) == {kept: 2}


def test_old_events_go_and_the_numbers_go_on(hand: Hand) -> None:
    chat = hand.new_chat()
    note(hand, chat, 3)
    hand.advance(100)
    assert hand.do(journal.prune, 50.0) is False
    assert told(hand, chat) == []
    assert hand.do(journal.head, chat) == 3
    assert note(hand, chat) == 4
