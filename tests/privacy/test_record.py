"""A chat's record: everything of one moment, for programs or for people, across chats."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from bot.privacy.readable import write_text
from bot.privacy.record import write_record
from storage.statements.tx import Tx
from tests.storage.kit import Hand, message, opened, store
from tests.storage.test_erasure import erase, fill_every_column, merged_chat
from tests.storage.test_retention import SECRET, answered

CHAT = """id channel account address topic kind name language created_at last_inbound_at answered_at
    paused_until handoff_at handoff_run unreachable_since unreachable_reason opted_out_at not_before
    offered merged_into merged addresses messages parts turns events payloads files reminders told
    data_requests"""
MESSAGE = """id account chat run ignored command request_id provider_id kind text sender_id
    sender_name address button attachments quoted album forwarded_from extra payload sent_at
    received_at edited_at deliveries edits payloads"""
PART = """id account chat run kind part standalone created_at text wire reply replaced_by adrift
    resends looks fence attempts not_before started_at state holder sent_at receipt provider_status
    confirmed scope code error watched receipts"""
STEP = """key state safe fence result begun failed paid input_tokens output_tokens started_at
    done_at"""


@pytest.fixture
def hand(database_url: str) -> Iterator[Hand]:
    """A migrated, empty database with one account and one living holder."""
    with opened(database_url) as hand:
        yield hand


def written(hand: Hand, *chats: int) -> dict[str, Any]:
    out = io.StringIO("what stood here before")
    hand.do(write_record, out, chats)
    return dict(json.loads(out.getvalue()))


def test_it_has_the_shape_that_is_promised_and_everything_of_a_person_who_was_two_chats(
    hand: Hand,
) -> None:
    chat, other = merged_chat(hand), answered(hand, 3)
    fill_every_column(hand, chat)
    whole = written(hand, chat, hand.find(other).chat)
    assert (whole["format"], whole["version"]) == ("answerback-record", 1)
    one, two = whole["chats"]
    assert set(CHAT.split()) <= set(one)
    assert len(one["merged"]) == 1
    assert {"address": "US.4711", "topic": ""} in one["addresses"]
    assert [set(said) for said in one["messages"]] == [set(MESSAGE.split())] * 2
    assert [set(part) for part in one["parts"]] == [set(PART.split())] * 2
    assert set(one["turns"][0]["steps"][0]) == set(STEP.split())
    assert one["turns"][0]["events"][0]["what"] == "failed"
    assert [len(one[name]) for name in ("turns", "files", "reminders", "payloads")] == [2, 1, 1, 1]
    assert len(two["messages"]) == 1
    assert whole["made_at"].endswith("Z")
    moments = [row["not_before"] for row in (one, *one["parts"], *one["turns"])]
    assert all(moment is None or moment.endswith("Z") for moment in moments)
    assert any(moments)


def test_it_is_read_page_by_page_and_may_be_written_again(hand: Hand) -> None:
    chat = hand.new_chat()

    def many(tx: Tx) -> None:
        for number in range(250):
            store(tx, hand.account, chat, message(number, text_=f"message {number}"))

    hand.do(many)
    out = io.StringIO()
    for _ in range(2):
        hand.do(write_record, out, [chat])
    [one] = json.loads(out.getvalue())["chats"]
    assert [said["text"] for said in one["messages"]] == [f"message {n}" for n in range(250)]
    hand.do(write_text, out, [chat])
    lines = out.getvalue().splitlines()
    assert len(lines) == 252
    assert lines[2].endswith("Ada: message 0")


def test_words_of_others_can_do_nothing_to_a_terminal(hand: Hand) -> None:
    chat = hand.new_chat()
    hand.do(store, hand.account, chat, message(1, text_="a\x1b[2Jb\u202ec\nd"))
    for write in (write_text, write_record):
        out = io.StringIO()
        hand.do(write, out, [chat])
        assert not {"\x1b", "\u202e"} & set(out.getvalue())


def test_a_forgotten_chat_has_nothing_to_read(hand: Hand) -> None:
    chat = merged_chat(hand)
    erase(hand, chat)
    out = io.StringIO()
    hand.do(write_text, out, [chat])
    assert len(out.getvalue().splitlines()) == 2
    assert SECRET not in json.dumps(written(hand, chat))
