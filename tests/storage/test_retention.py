"""Retention: the words of what is over go when they are old, and everything else stays."""

from __future__ import annotations

import pytest
from sqlalchemy import Text

from bot.domain.ending import Cause, Close, Ending
from bot.domain.reminders import Schedule
from bot.domain.reply import PartBody, PartKind
from storage import audit_log, chats, holders, inbox, outbox, reminders, runs, steps
from storage.inbox import NewPayload
from storage.operators import hand_replies, notes
from storage.outbox import Attempt, NewParts
from storage.retention import delete_old
from storage.schema.tables import metadata
from storage.schema.tables.words import NO_WORDS, WORDS
from storage.statements.tx import StatementFailed, Tx
from storage.steps import Done
from tests.storage.cost.plans import BIG, fill, reading
from tests.storage.kit import Hand, message, store
from tests.storage.rivals import first

DAY = 86_400.0
SECRET = "swordfish"


def test_every_column_of_text_is_known_to_hold_words_or_none() -> None:
    texts = {
        f"{c}" for t in metadata.tables.values() for c in t.columns if isinstance(c.type, Text)
    }
    worded = {f"{table.c[name]}" for table, names in WORDS.items() for name in names}
    others = {f"{table.c[name]}" for table, names in NO_WORDS.items() for name in names.split()}
    assert worded & others == set()
    assert texts == (worded & texts) | others


def words_left(hand: Hand) -> set[str]:
    """The columns in which the secret stands."""
    found = set()
    for table in metadata.tables.values():
        names = table.c.keys()
        for row in hand.rows(f"SELECT {', '.join(names)} FROM {table.name}"):
            told = zip(names, row, strict=True)
            found |= {f"{table.name}.{name}" for name, value in told if SECRET in str(value)}
    return found


def answered(hand: Hand, number: int, *, ended: bool = True) -> int:
    """A run that was answered with the secret in every word of it; returns it."""
    run = hand.running()

    def live(tx: Tx) -> None:
        chats.lock(tx, run.chat)
        said = message(number, str(run.chat), SECRET)
        stored = store(tx, hand.account, run.chat, said)
        inbox.assign(tx, stored, run.id)
        inbox.store_payloads(tx, [NewPayload(hand.account, SECRET, "d", message=stored)])
        inbox.store_edit(tx, stored, 1.0, SECRET, SECRET, used=True)
        steps.begin(tx, run.id, "look", run.fence, safe=True, paid=False)
        steps.finish(tx, run.id, "look", Done(f'"{SECRET}"'))
        audit_log.note(tx, "worker", "failed", SECRET, run=run.id)
        to = outbox.PartOwner(hand.account, run.chat, run.id)
        body, reply = PartBody(SECRET, SECRET), f"*{SECRET}*"
        new = NewParts(to, PartKind.REPLY, [body], hand.holder, reply)
        [part] = outbox.store_parts_each(tx, [new])[run.id]
        outbox.receive(tx, Attempt(part.id, 1), f"m{number}")
        if ended:
            runs.settle(tx, run.claim, Close(Ending.ANSWERED, Cause.DELIVERED, SECRET))

    hand.do(live)
    return run.id


def delete_all(hand: Hand, days: float) -> int:
    pages = 1
    while hand.do(delete_old, days * DAY):
        pages += 1
    return pages


def test_old_words_go_and_what_happened_stays(hand: Hand) -> None:
    run = answered(hand, 1)
    hand.advance(91 * DAY)
    delete_all(hand, 90)
    assert words_left(hand) == set()
    assert hand.find(run).ending is Ending.ANSWERED
    [part] = hand.do(outbox.of_run, run)
    assert (part.state, part.receipt) == ("sent", "m1")
    assert hand.rows("SELECT count(*) FROM payloads") == [(0,)]
    assert hand.rows("SELECT count(*) FROM events") == [(0,)]
    assert hand.rows("SELECT count(*) FROM receipts") == [(0,)]
    again = message(1, str(hand.find(run).chat), SECRET)
    with pytest.raises(StatementFailed):
        hand.do(store, hand.account, hand.find(run).chat, again)


def test_what_is_young_or_not_over_keeps_its_words(hand: Hand) -> None:
    live = answered(hand, 1, ended=False)
    hand.advance(91 * DAY)
    hand.do(holders.renew, hand.holder)
    answered(hand, 2)
    delete_all(hand, 90)
    assert hand.value("SELECT count(*) FROM inbound WHERE text = :word", word=SECRET) == 2
    hand.do(runs.end_live, live, Close(Ending.WITHDRAWN, Cause.STOPPED, "stop"))
    hand.advance(91 * DAY)
    delete_all(hand, 90)
    assert words_left(hand) == set()


def test_words_of_no_run_go_too(hand: Hand) -> None:
    chat = hand.new_chat()
    hand.do(store, hand.account, chat, message(1, text_=SECRET))
    to = outbox.PartOwner(hand.account, chat, None)
    hand.do(outbox.post, to, PartKind.OPERATOR, PartBody(SECRET, SECRET))
    done, later = (
        hand.do(
            reminders.add, hand.account, chat, key, SECRET, Schedule(hand.clock.wall() + due, "UTC")
        )
        for key, due in (("done", 1.0), ("later", 200 * DAY))
    )
    assert hand.do(reminders.fire, done, None)
    hand.advance(91 * DAY)
    delete_all(hand, 90)
    assert words_left(hand) == {"reminders.text"}
    assert hand.do(reminders.cancel, chat, later.id)
    hand.advance(91 * DAY)
    delete_all(hand, 90)
    assert words_left(hand) == set()


def test_many_go_page_by_page_and_none_is_left_out(hand: Hand) -> None:
    fill(hand, ended=1_000, waiting=10)
    filled = "UPDATE inbound SET text = :word WHERE run IS NOT NULL RETURNING 1"
    assert len(hand.rows(filled, word=SECRET)) == 1_000
    assert delete_all(hand, 90) >= 5
    assert words_left(hand) == set()
    assert not hand.do(delete_old, 90 * DAY)


def test_a_page_leaves_a_chat_that_somebody_is_at_work_on(postgres_hand: Hand) -> None:
    hand = postgres_hand
    one, two = answered(hand, 1), answered(hand, 2)
    hand.advance(91 * DAY)
    busy = hand.find(one).chat
    with first(hand) as rival:
        rival.do(chats.lock, busy)
        hand.do(delete_old, 90 * DAY)
    texts = "SELECT text FROM inbound ORDER BY id"
    assert hand.rows(texts) == [(SECRET,), (SECRET,)]
    delete_all(hand, 90)
    assert hand.rows(texts) == [("",), ("",)]
    assert hand.find(two).messages == 0


def test_a_pass_with_nothing_to_do_reads_by_index_however_long_the_past(hand: Hand) -> None:
    fill(hand, ended=5_000, waiting=1_000)
    delete_all(hand, 90)
    answered(hand, 1)
    found = reading(hand, delete_old, 90 * DAY)
    assert not found.whole_tables & BIG & {"runs", "inbound", "outbox", "chats"}
    assert found.pages < 100


def test_words_of_operators_go_with_those_of_people(hand: Hand) -> None:
    chat = hand.new_chat()
    hand.do(notes.add, chat, "ann", SECRET)
    hand.do(hand_replies.record, chat, [1], "ann", SECRET, "key")
    hand.advance(91 * DAY)
    hand.do(notes.add, chat, "ann", "a young one")
    delete_all(hand, 90)
    assert words_left(hand) == set()
    assert [note.text for note in hand.do(notes.listed, chat, 10)] == ["", "a young one"]
    assert hand.rows("SELECT who, key FROM hand_replies") == [("ann", "key")]
