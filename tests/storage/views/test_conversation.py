"""The conversation of a chat, page by page, though a clock was set while it went on."""

from __future__ import annotations

import pytest

from bot.domain.ending import Cause, Close, Ending
from bot.domain.reply import PartKind
from storage import holders, inbox, outbox, runs
from storage.inbox import NewMessage
from storage.outbox import Attempt
from storage.views import record
from storage.views.conversation import Before, conversation
from storage.views.history import ChatBefore, history
from storage.views.runs import run_line
from tests.storage.kit import LEASE, Hand, message, store

HOUR = 3600.0


def asked(hand: Hand, chat: int, number: int) -> int:
    """A person says something, and a run is to answer it; returns the run."""
    run = hand.running(chat)
    said = hand.do(store, hand.account, chat, message(number, text_=f"{number}"))
    hand.do(lambda tx: tx.run(f"UPDATE inbound SET run = {run.id} WHERE id = {said}"))
    hand.advance(2.0)
    return run.id


def answered(hand: Hand, run: int, ending: Ending = Ending.ANSWERED) -> None:
    """The run says what it was told, and ends."""
    found = hand.find(run)
    [(text,)] = hand.rows("SELECT text FROM inbound WHERE run = :run", run=run)
    if ending is Ending.ANSWERED:
        [part] = hand.parts(found, f"re: {text}", begun=True)
        hand.advance(1.0)
        hand.do(outbox.receive, Attempt(part.id, 1), f"m{part.id}")
    hand.do(runs.settle, found.claim, Close(ending, Cause.DELIVERED))
    hand.advance(2.0)


def set_clock(hand: Hand, by: float) -> None:
    """Set the clock of the database, while the one process lives."""
    if hand.db.is_sqlite:
        hand.clock.wall_is_wrong_by += by
    else:
        hand.clock.database_is_wrong_by += by
    hand.advance(0.0)
    hand.do(holders.renew, hand.holder)


def exchange(hand: Hand, chat: int, number: int) -> list[str]:
    answered(hand, asked(hand, chat, number))
    return [f"{number}", f"re: {number}"]


@pytest.fixture
def chat(hand: Hand) -> int:
    hand.stop_time()
    return hand.new_chat("700")


def pages(hand: Hand, chat: int, size: int) -> list[list[str]]:
    """The texts of all pages, the newest page first."""
    found: list[list[str]] = []
    place: Before | None = Before()
    while place is not None:
        talk = hand.do(conversation, chat, size, place)
        found.append([line.text for line in talk.lines])
        place = talk.older
    return found


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_page_shows_what_was_said_in_its_order(hand: Hand, chat: int, step: float) -> None:
    said = exchange(hand, chat, 1) + exchange(hand, chat, 2)
    for number, by in ((3, step), (4, 10.0), (5, -step)):
        set_clock(hand, by)
        said += exchange(hand, chat, number)
    assert pages(hand, chat, 50) == [said]
    assert [line.text for line in hand.do(history, [ChatBefore(chat, 0)], 50)[0]] == said


@pytest.mark.parametrize("size", [1, 3, 4])
def test_no_page_leaves_out_what_was_said_when_the_clock_was_set_back(
    hand: Hand, chat: int, size: int
) -> None:
    said: list[str] = []
    for number in range(1, 9):
        said += exchange(hand, chat, number)
        set_clock(hand, {3: -20.0, 5: -HOUR, 7: HOUR}.get(number, 0.0))
    found = pages(hand, chat, size)
    assert sorted(text for page in found for text in page) == sorted(said)
    assert all(len(page) == size for page in found[:-1])


def test_a_part_that_is_sent_once_more_stands_where_it_was_sent_last(hand: Hand, chat: int) -> None:
    said = exchange(hand, chat, 1) + exchange(hand, chat, 2)
    [(part, attempts)] = hand.rows("SELECT id, attempts FROM outbox WHERE text = 're: 1'")
    hand.do(lambda tx: tx.run(f"UPDATE outbox SET state = 'uncertain' WHERE id = {part}"))
    assert hand.do(outbox.resend, part, attempts, standalone=True)
    assert hand.do(outbox.claim, part, hand.holder, LEASE) is not None
    assert pages(hand, chat, 50) == [[said[0], *said[2:], said[1]]]


def test_operators_words_stand_where_they_were_written(hand: Hand, chat: int) -> None:
    answered(hand, asked(hand, chat, 1))
    set_clock(hand, -HOUR)
    answered(hand, asked(hand, chat, 2))
    hand.post(chat, PartKind.OPERATOR)
    answered(hand, asked(hand, chat, 3), Ending.SILENT)
    answered(hand, asked(hand, chat, 4))
    said = ["1", "re: 1", "2", "re: 2", "a note", "3", "4", "re: 4"]
    assert [line.text for line in hand.do(history, [ChatBefore(chat, 0)], 50)[0]] == said


def test_the_messages_of_a_run_are_named_as_they_came(hand: Hand, chat: int) -> None:
    run = asked(hand, chat, 1)
    set_clock(hand, -HOUR)
    said = hand.do(store, hand.account, chat, message(2))
    hand.do(lambda tx: tx.run(f"UPDATE inbound SET run = {run} WHERE id = {said}"))
    line = hand.do(run_line, run, LEASE)
    assert line is not None
    assert line.requests == ("tg-700-1", "tg-700-2")


def test_the_record_of_a_chat_has_its_messages_as_they_came(hand: Hand, chat: int) -> None:
    """Over more pages than one."""
    for half in (range(1, 81), range(81, 161)):
        new = [NewMessage(hand.account, chat, message(number), "{}") for number in half]
        hand.do(inbox.store_messages, new)
        set_clock(hand, -HOUR)
    ids = [row["id"] for row in hand.do(lambda tx: list(record.messages(tx, chat)))]
    assert (len(ids), ids) == (160, sorted(ids))
