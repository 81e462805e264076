"""The last runs of a chat: those that have not ended first, then by their ends, page by page."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from storage.schema.tables import chats, runs
from storage.statements.tx import Tx
from storage.views.runs import last_of_chat
from tests.storage.kit import Hand


def _filled(tx: Tx) -> None:
    """Six runs that ended in an order of their own, a head and two that wait, of two chats."""
    for chat in (1, 2):
        row: dict[str, Any] = {"account": 1, "address": f"x{chat}", "kind": "private"}
        tx.execute(sa.insert(chats).values(id=90 + chat, created_at=0.0, **row))
    ends = {1: 50.0, 2: 40.0, 3: 60.0, 4: 60.0, 5: 10.0, 6: 20.0}
    for number in range(1, 10):
        state = "ended" if number < 7 else "waiting" if number > 7 else "ready"
        row = {"account": 1, "order_at": number, "created_at": 0.0, "idle_since": 0.0}
        if state == "ended":
            row |= {"ending": "answered", "ended_at": ends[number]}
        for chat in (1, 2):
            values = row | {"id": number * 10 + chat, "chat": 90 + chat, "state": state}
            tx.execute(sa.insert(runs).values(**values))


def test_pages_go_back_by_the_ends_and_leave_nothing_out(hand: Hand) -> None:
    hand.do(_filled)
    first = hand.do(last_of_chat, 91, 5)
    second = hand.do(last_of_chat, 91, 3, first[-1])
    third = hand.do(last_of_chat, 91, 3, second[-1])
    assert first == [91, 81, 71, 41, 31]
    assert second == [11, 21, 61]
    assert third == [51]
