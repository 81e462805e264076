"""A database that is written anew has everything that is left, and nothing that was deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import chats
from storage.engine import compact
from storage.retention import compacted, compaction_owed, owe_compaction
from tests.storage.kit import Hand, message, store
from tests.storage.test_erasure import erase
from tests.storage.test_retention import SECRET


def bytes_of(hand: Hand) -> bytes:
    file = Path(str(hand.db.url.database))
    parts = (file, file.with_name(f"{file.name}-wal"))
    return b"".join(part.read_bytes() for part in parts if part.exists())


def test_no_byte_of_a_deleted_word_is_left_in_a_file(hand: Hand) -> None:
    chat, other = hand.new_chat(), hand.new_chat()
    hand.do(store, hand.account, other, message(1, "other", "mine"))
    for number in range(2, 40):
        hand.do(store, hand.account, chat, message(number, "700", f"{SECRET} " * number * 20))
    erase(hand, chat)
    if hand.db.is_sqlite:
        assert SECRET.encode() in bytes_of(hand)
    assert compact.compact(hand.db.url, ["inbound", "chats"])
    if hand.db.is_sqlite:
        assert SECRET.encode() not in bytes_of(hand)
    assert hand.value("SELECT count(*) FROM inbound") == 39
    assert hand.do(chats.get, other).name == "Ada"


def test_whoever_is_forgotten_while_it_is_done_is_owed_it_still(hand: Hand) -> None:
    assert hand.do(compaction_owed) is None
    hand.do(owe_compaction)
    first = hand.do(compaction_owed)
    assert first is not None
    hand.advance(1)
    hand.do(owe_compaction)
    hand.do(compacted, first)
    second = hand.do(compaction_owed)
    assert second is not None
    assert second == pytest.approx(first + 1, abs=0.5)
    hand.do(compacted, second)
    assert hand.do(compaction_owed) is None
