"""Erasure: whatever a column is that holds words, and whichever table it is in, they go."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from bot.domain.ending import Cause, Close, Ending
from bot.domain.message import Address
from storage import chats, erasure, files, inbox, outbox, runs
from storage.files import KeptFile
from storage.outbox import Attempt
from storage.schema.tables import payloads
from storage.schema.tables.words import WORDS
from storage.statements.chat_rows import START, Mark
from storage.statements.tx import Row, Tx
from storage.views.chats import LastIds, last_ids
from tests.storage.kit import LEASE, Hand, message, store
from tests.storage.test_retention import SECRET, answered

_PHONE = "whatsapp:+15550100022"
_OTHER = "US.4711"


def erase(hand: Hand, chat: int, until: LastIds | None = None) -> None:
    until = until or hand.do(last_ids)
    for step in erasure.steps_of(until):
        after: Mark | None = START
        while after is not None:
            after = hand.do(step, chat, after)
    hand.do(erasure.finish, chat)


def merged_chat(hand: Hand) -> int:
    """One person who was two chats, each with a turn, all of whose words are the secret."""
    runs = [answered(hand, 1), answered(hand, 2)]
    first, second = (hand.find(run).chat for run in runs)

    def unite(tx: Tx) -> int:
        for chat, address in ((first, _PHONE), (second, _OTHER)):
            chats.know_address(tx, hand.account, Address(address), chat)
        named = [Address(_PHONE), Address(_OTHER)]
        return chats.link(tx, hand.account, first, named).id

    assert hand.do(unite) == first
    assert hand.value("SELECT count(*) FROM chats WHERE merged_into IS NOT NULL") == 1
    return first


def fill_every_column(hand: Hand, chat: int) -> None:
    """Put the secret into every column that holds words, of a row of every table that has such; a
    table that has none yet gets one that belongs to the chat."""
    file = KeptFile("f" * 64, SECRET, "text/plain", SECRET.encode())
    hand.do(files.keep, hand.account, Address(_OTHER), file)
    loose = {"account": hand.account, "received_at": 1.0, "body": "", "digest": "loose"}
    hand.do(_insert, payloads, loose)
    for table, words in WORDS.items():
        if hand.value(f"SELECT count(*) FROM {table.name}") == 0:
            hand.do(_insert, table, _row(table, chat, hand))
        for name in words:
            if isinstance(table.c[name].type, sa.Text):
                distinct = " || payloads.id" if table is payloads and name == "digest" else ""
                said = f"'{SECRET} of {_PHONE}'{distinct}"
                hand.do(_run, f"UPDATE {table.name} SET {name} = {said}")


def _insert(tx: Tx, table: sa.Table, row: dict[str, Any]) -> None:
    tx.execute(sa.insert(table), row)


def _run(tx: Tx, sql: str) -> None:
    tx.execute(sa.text(sql))


def _row(table: sa.Table, chat: int, hand: Hand) -> dict[str, Any]:
    """Some row of a table, of this chat where it names one."""
    own = {"chat": chat, "account": hand.account}
    values = {sa.Text: "x", sa.Double: 1.0, sa.Boolean: False}
    return {
        column.name: own.get(column.name, values.get(type(column.type), 1))
        for column in table.columns
        if not (column.nullable or column.server_default or column.autoincrement is True)
        and not (column.primary_key and column.name == "id")
    } | ({"state": "waiting"} if table.name == "reminders" else {})


def left(hand: Hand) -> set[str]:
    """Every column of the database itself in which the secret stands."""
    catalog = (
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        if hand.db.is_sqlite
        else "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    )
    found = set()
    for (table,) in hand.rows(catalog):
        for row in hand.do(_all, table):
            for name, value in row._asdict().items():
                words = (
                    bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()
                )
                found |= {f"{table}.{name}"} if SECRET.encode() in words else set()
    return found


def _all(tx: Tx, table: str) -> list[Row]:
    return tx.execute(sa.text(f"SELECT * FROM {table}")).all()


def test_no_column_of_any_table_keeps_a_word_of_a_forgotten_person(hand: Hand) -> None:
    chat = merged_chat(hand)
    fill_every_column(hand, chat)
    worded = {
        f"{table.name}.{name}"
        for table, words in WORDS.items()
        for name in words
        if isinstance(table.c[name].type, sa.Text | sa.LargeBinary)
    }
    assert left(hand) == worded
    erase(hand, chat)
    assert left(hand) == set()


def test_what_others_wrote_stays(hand: Hand) -> None:
    chat = merged_chat(hand)
    mine = answered(hand, 3)
    before = {name: _rows_of(hand, name, mine) for name in ("runs", "inbound", "outbox")}
    erase(hand, chat)
    assert left(hand) >= {"inbound.text", "outbox.text", "steps.result"}
    assert before == {name: _rows_of(hand, name, mine) for name in before}


def _rows_of(hand: Hand, table: str, run: int) -> list[tuple[Any, ...]]:
    return hand.rows(f"SELECT * FROM {table} WHERE {'id' if table == 'runs' else 'run'} = {run}")


def test_what_is_said_after_the_wish_is_not_meant(hand: Hand) -> None:
    chat = merged_chat(hand)
    until = hand.do(last_ids)
    later = hand.running(chat)
    hand.parts(later, SECRET)
    assert not hand.do(erasure.in_use, chat, until)
    erase(hand, chat, until)
    assert left(hand) == {"outbox.text"}


def test_words_that_are_being_worked_on_or_sent_are_in_use(hand: Hand) -> None:
    chat = hand.new_chat()
    until = hand.do(last_ids)
    assert not hand.do(erasure.in_use, chat, until)
    run = hand.ready(chat)
    message_ = hand.do(store, hand.account, chat, message(9, text_=SECRET))
    hand.do(inbox.assign, message_, run.id)
    assert hand.do(erasure.in_use, chat, hand.do(last_ids))
    hand.do(runs.end_live, run.id, Close(Ending.WITHDRAWN, Cause.STOPPED))
    assert not hand.do(erasure.in_use, chat, hand.do(last_ids))
    hand.post(chat)
    assert hand.do(erasure.in_use, chat, hand.do(last_ids))


def test_nothing_is_looked_for_at_a_provider_once_its_words_are_gone(hand: Hand) -> None:
    chat = hand.new_chat()
    part = hand.post(chat)
    hand.do(outbox.claim, part, hand.holder, LEASE)
    hand.do(outbox.doubt, Attempt(part, 1), "no answer")
    assert [one.id for one in hand.do(outbox.doubtful, hand.account, 5, 10)] == [part]
    erase(hand, chat)
    assert hand.do(outbox.doubtful, hand.account, 5, 10) == []
