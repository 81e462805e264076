"""What a platform says of a chat, on both databases."""

from __future__ import annotations

import pytest

from storage import chats
from tests.storage.kit import Hand


@pytest.mark.parametrize("at", [None, 1_800_000_000.0])
def test_a_chat_that_nothing_reaches_is_parked_with_or_without_a_time(
    hand: Hand, at: float | None
) -> None:
    run = hand.running()
    assert hand.do(chats.park, run.chat, "blocked by the person", at)
    assert hand.rows("SELECT unreachable_reason FROM chats") == [("blocked by the person",)]
