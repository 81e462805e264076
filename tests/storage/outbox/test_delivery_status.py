"""Delivery status after a part was taken: every move, won and lost."""

from __future__ import annotations

import pytest

from bot.domain.delivery import PartState, Scope
from bot.domain.ending import Cause, Close, Ending
from bot.domain.reply import PartBody
from storage import outbox, runs
from storage.outbox import Attempt, Part
from tests.storage.kit import Hand


def taken(hand: Hand, receipt: str = "SM1") -> Part:
    """A part that the platform took under this receipt."""
    part = hand.parts(hand.running(), begun=True)[0]
    assert hand.do(outbox.receive, Attempt(part.id, 1), receipt)
    return hand.part(part.id)


def refuse(hand: Hand, part: Part, receipt: str = "SM1", code: str = "63013") -> bool:
    return hand.do(
        outbox.refuse_sent,
        part.id,
        receipt,
        scope=Scope.PAYLOAD,
        status="undelivered",
        error="refused",
        code=code,
    )


def test_a_status_moves_forward_only(hand: Hand) -> None:
    part = taken(hand)
    told = [
        hand.do(outbox.confirm, part.id, "SM1", PartState(state), state)
        for state in ("sent", "delivered", "sent", "delivered", "read", "delivered")
    ]
    assert told == [True, True, False, False, True, False]
    assert hand.part(part.id).state is PartState.READ


def test_a_word_on_another_message_moves_nothing(hand: Hand) -> None:
    part = taken(hand)
    assert not hand.do(outbox.confirm, part.id, "SM2", PartState.READ, "read")
    assert not refuse(hand, part, "SM2")
    assert hand.part(part.id).state is PartState.SENT


def test_what_was_delivered_is_not_refused_any_more(hand: Hand) -> None:
    part = taken(hand)
    hand.do(outbox.confirm, part.id, "SM1", PartState.DELIVERED, "delivered")
    assert not refuse(hand, part)


def test_the_first_code_stays(hand: Hand) -> None:
    part = taken(hand)
    assert refuse(hand, part)
    assert not refuse(hand, part, code="63032")
    assert hand.value("SELECT code FROM outbox") == "63013"


@pytest.mark.parametrize("again", [False, True])
def test_what_was_delivered_after_all_is_not_sent_again(hand: Hand, again: bool) -> None:
    part = taken(hand)
    refuse(hand, part)
    if again:
        assert hand.do(outbox.send_again, part.id, 30.0, standalone=True)
    assert not hand.do(outbox.confirm, part.id, "SM1", PartState.SENT, "sent")
    assert hand.do(outbox.confirm, part.id, "SM1", PartState.DELIVERED, "delivered")
    assert (hand.part(part.id).state, hand.part(part.id).error) == (PartState.DELIVERED, "")


def test_a_part_is_sent_again_once_and_waits(hand: Hand) -> None:
    hand.stop_time()
    part = taken(hand)
    assert not hand.do(outbox.send_again, part.id, 0.0, standalone=True)
    refuse(hand, part)
    assert hand.do(outbox.send_again, part.id, 30.0, standalone=True, body=PartBody("link", "{1}"))
    waiting = hand.part(part.id)
    assert (waiting.state, waiting.body.text, waiting.confirmed) == ("pending", "link", False)
    assert waiting.not_before == pytest.approx(hand.clock.wall() + 30, abs=0.01)
    hand.do(outbox.receive, Attempt(part.id, 2), "SM2")
    assert refuse(hand, part, "SM2")
    assert not hand.do(outbox.send_again, part.id, 0.0, standalone=True)


def test_a_part_that_can_not_be_asked_about_is_not_looked_for_or_sent_again(hand: Hand) -> None:
    part = hand.parts(hand.running(), begun=True)[0]
    assert not hand.do(outbox.give_up_looking, part.id, 1)
    hand.do(outbox.doubt, Attempt(part.id, 1), "no answer")
    assert not hand.do(outbox.give_up_looking, part.id, 2)
    assert hand.do(outbox.give_up_looking, part.id, 1)
    assert min(hand.part(part.id).looks, hand.part(part.id).resends) > 100


def test_words_are_changed_only_before_they_left(hand: Hand) -> None:
    run = hand.running()
    [first, second] = hand.parts(run, "one", "two", begun=True)
    assert hand.do(outbox.rewrite, second.id, PartBody("template", "{}"))
    hand.do(outbox.receive, Attempt(first.id, 1), "SM1")
    assert not hand.do(outbox.rewrite, first.id, PartBody("template", "{}"))
    assert hand.part(second.id).body.text == "template"


def test_what_a_template_took_over_is_dropped(hand: Hand) -> None:
    run = hand.running()
    [first, second, third] = hand.parts(run, "one", "two", "three", begun=True)
    hand.do(outbox.receive, Attempt(first.id, 1), "SM1")
    assert hand.do(outbox.drop_others, run.id, second.id) == 1
    states = [hand.part(p.id).state for p in (first, second, third)]
    assert states == ["sent", "pending", "dropped"]


def test_only_a_run_that_waits_for_its_answer_is_hastened(hand: Hand) -> None:
    new = hand.ready(hand.new_chat(), wait=60)
    assert not hand.do(runs.hasten, new.id)
    run = hand.running()
    hand.do(runs.mark_replied_each, [run.claim])
    assert not hand.do(runs.hasten, run.id)
    hand.do(runs.give_back, run.claim, 60.0, "looks again")
    assert hand.do(runs.hasten, run.id)
    assert not hand.do(runs.hasten, run.id)


def test_unreported_parts_are_those_of_a_few_minutes_ago(hand: Hand) -> None:
    part = taken(hand)
    hand.do(runs.settle, hand.find(part.run or 0).claim, Close(Ending.ANSWERED, Cause.DELIVERED))
    seen = []
    for seconds in (0, 61, 600):
        hand.advance(seconds)
        seen.append(list(hand.do(outbox.unreported, hand.account, 10)))
    assert seen == [[], [part.id], []]


def test_a_part_follows_an_earlier_one_that_is_not_reported_on(hand: Hand) -> None:
    run = hand.running()
    [first, second] = hand.parts(run, "one", "two", begun=True)
    hand.do(outbox.receive, Attempt(first.id, 1), "SM1")
    assert hand.do(outbox.follows_unreported, hand.part(second.id), 30.0)
    assert not hand.do(outbox.follows_unreported, hand.part(first.id), 30.0)
    hand.advance(31)
    assert not hand.do(outbox.follows_unreported, hand.part(second.id), 30.0)
    hand.advance(-31)
    hand.do(outbox.confirm, first.id, "SM1", PartState.SENT, "sent")
    assert not hand.do(outbox.follows_unreported, hand.part(second.id), 30.0)
