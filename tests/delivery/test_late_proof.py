"""A proof that comes when its run has ended in doubt, and the note on that doubt."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.delivery.finish import end_run
from bot.delivery.outcome import record_alone
from bot.domain.delivery import NotSent, Outcome, Refused, Scope, Sent, Unknown
from bot.domain.ending import Cause, Close, Ending
from storage import outbox
from tests.delivery.test_answers_in_lists import Desk, at_desk
from tests.storage.kit import LEASE, opened

NOTE = "SELECT state FROM outbox WHERE kind = 'notice'"


@pytest.fixture
def desk(database_url: str) -> Iterator[Desk]:
    with opened(database_url) as hand:
        yield at_desk(hand)


@pytest.mark.parametrize(
    ("then", "ending", "note"),
    [
        (Sent("m1"), Ending.ANSWERED, "dropped"),
        (Refused(Scope.PAYLOAD, "it is too long"), Ending.UNDELIVERABLE, "dropped"),
        (Unknown("the connection broke"), Ending.UNCERTAIN, "pending"),
    ],
)
def test_the_note_on_a_doubt_waits_for_the_answer_and_goes_where_the_doubt_is_still_there(
    desk: Desk, then: Outcome, ending: Ending, note: str
) -> None:
    hand, rt = desk.hand, desk.rt
    run = hand.running()
    [part] = hand.parts(run, begun=True)
    hand.do(outbox.doubt, outbox.Attempt(part.id, part.attempts), "its process died")
    hand.do(end_run, rt, run, Close(Ending.UNCERTAIN, Cause.UNCONFIRMED))
    hand.do(record_alone, rt, part, NotSent("no connection"))
    assert hand.rows(NOTE) == [("pending",)]
    assert [one.id for one in hand.do(outbox.due, [hand.account], 20)] == [part.id]
    again = hand.do(outbox.claim, part.id, hand.holder, LEASE)
    assert again is not None
    hand.do(record_alone, rt, again, then)
    assert hand.find(run).ending is ending
    assert hand.rows(NOTE) == [(note,)]
