"""The last hours in spans: counted where few runs ended, estimated where many did."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from storage.schema.tables import chats, runs
from storage.statements import clock
from storage.statements.tx import Tx
from storage.views.health.hours import SAMPLE, last_hours
from tests.storage.kit import Hand

SPAN = 900.0


def _filled(tx: Tx, ended: list[tuple[float, str]]) -> float:
    """Runs that ended so many seconds before the begin of this span; returns that."""
    begins = clock.read(tx) // SPAN * SPAN
    tx.execute(
        sa.insert(chats).values(id=1, account=1, address="1", kind="private", created_at=0.0)
    )
    for number, (before, ending) in enumerate(ended, start=1):
        at = begins - before
        row: dict[str, Any] = {"id": number, "account": 1, "chat": 1, "order_at": at}
        row |= {"created_at": at - 30, "idle_since": at, "state": "ended", "ending": ending}
        tx.execute(sa.insert(runs).values(**row, ended_at=at))
    return begins


def test_each_span_has_what_ended_in_it_and_how_long_that_took(hand: Hand) -> None:
    begins = hand.do(_filled, [(1, "answered"), (2, "failed"), (SPAN + 1, "answered")])
    *_, before, last, current = hand.do(last_hours, SPAN)
    assert current.ended == 0
    assert current.waited is None
    assert (last.begins, last.ended, last.badly, last.estimated) == (begins - SPAN, 2, 1, False)
    assert last.waited == pytest.approx(30)
    assert (before.ended, before.badly) == (1, 0)


def test_of_many_some_are_looked_at(hand: Hand) -> None:
    """Two a second for five minutes, then none: what is estimated is the rate at the begin."""
    ended = [(SPAN - 0.5 * number - 0.1, "answered") for number in range(2 * SAMPLE)]
    hand.do(_filled, ended)
    *_, last, _ = hand.do(last_hours, SPAN)
    assert last.estimated
    assert last.ended == pytest.approx(2 * SPAN, rel=0.05)
