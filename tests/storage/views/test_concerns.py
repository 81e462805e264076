"""Chats that want a person: every reason, when it is over, and pages that hold each chat once."""

from __future__ import annotations

import pytest

from bot.domain.concern import GIVEN_UP, Concern
from bot.domain.delivery import Scope
from bot.domain.ending import Cause, Close, Ending
from bot.domain.reply import PartBody, PartKind
from bot.domain.run import Run
from storage import chats, outbox, runs
from storage.outbox import Attempt, PartOwner
from storage.statements.tx import Tx
from storage.views.chats import heard_lately
from storage.views.concerns import Mark, concerns_of, count_concerns, with_concern
from tests.storage.kit import Hand, message, store

DAY = 86_400.0


@pytest.fixture(autouse=True)
def _time_stands_still(hand: Hand) -> None:
    hand.stop_time()


def end(hand: Hand, run: Run, ending: Ending) -> int:
    """The run ends so, by itself; returns its chat."""
    hand.do(runs.settle, run.claim, Close(ending, Cause.FAILURES))
    return run.chat


def with_part(hand: Hand, *, refused: bool) -> tuple[int, int]:
    """A chat with a run whose part was refused, or may have arrived; returns it and the part."""
    run = hand.running()
    [part] = hand.parts(run, begun=True)
    attempt = Attempt(part.id, 1)
    if refused:
        hand.do(outbox.refuse, attempt, Scope.PAYLOAD, "no", "400")
    else:
        hand.do(outbox.doubt, attempt, "a time-out", "")
    return end(hand, run, Ending.UNDELIVERABLE if refused else Ending.UNCERTAIN), part.id


def asked(hand: Hand) -> int:
    """A chat whose agent asked for a person."""
    chat = end(hand, hand.running(), Ending.ANSWERED)
    hand.do(chats.hand_over, chat, 1)
    return chat


def paused(hand: Hand) -> int:
    chat = hand.new_chat()
    hand.do(chats.pause, chat, None)
    return chat


def reasons(hand: Hand, chat: int) -> list[Concern]:
    return list(hand.do(concerns_of, [chat])[chat])


def answer(hand: Hand, chat: int) -> None:
    """An operator's words arrive in the chat."""

    def write(tx: Tx) -> None:
        to = PartOwner(hand.account, chat, None)
        part = outbox.post(tx, to, PartKind.OPERATOR, PartBody("hello", "{}"))
        assert part is not None
        assert outbox.claim(tx, part, hand.holder, 600.0) is not None
        outbox.receive(tx, Attempt(part, 1), f"by-hand-{part}")

    hand.advance(1.0)
    hand.do(write)


def test_a_chat_tells_every_reason_the_first_one_first(hand: Hand) -> None:
    chat = asked(hand)
    refused, _ = with_part(hand, refused=True)
    unsure, _ = with_part(hand, refused=False)
    assert reasons(hand, chat) == [Concern.ASKED, Concern.PAUSED]
    assert reasons(hand, refused) == [Concern.REFUSED]
    assert reasons(hand, unsure) == [Concern.UNCERTAIN]
    assert reasons(hand, paused(hand)) == [Concern.PAUSED]
    assert reasons(hand, end(hand, hand.running(), Ending.ANSWERED)) == []


@pytest.mark.parametrize("ending", GIVEN_UP)
def test_who_was_given_up_wants_a_person_until_something_else_happens(
    hand: Hand, ending: Ending
) -> None:
    answered, again, late, old = (end(hand, hand.running(), ending) for _ in range(4))
    for chat in (answered, again, late, old):
        assert reasons(hand, chat) == [Concern.APOLOGISED]
    answer(hand, answered)
    hand.waiting(again)
    hand.advance(1.0)
    end(hand, hand.running(late), Ending.ANSWERED)
    for chat in (answered, again, late):
        assert reasons(hand, chat) == []
    hand.advance(8 * DAY)
    assert reasons(hand, old) == []


def test_a_refusal_is_over_once_somebody_answered_and_a_doubt_once_it_is_settled(
    hand: Hand,
) -> None:
    refused, _ = with_part(hand, refused=True)
    unsure, part = with_part(hand, refused=False)
    for chat in (refused, unsure):
        answer(hand, chat)
    assert reasons(hand, refused) == []
    assert reasons(hand, unsure) == [Concern.UNCERTAIN]
    hand.do(outbox.believe_arrived, Attempt(part, 1), "word-of-ann")
    assert reasons(hand, unsure) == []


@pytest.mark.parametrize("concern", Concern)
def test_pages_of_one_reason_hold_each_chat_once_the_longest_wait_first(
    hand: Hand, concern: Concern
) -> None:
    make = {
        Concern.ASKED: asked,
        Concern.APOLOGISED: lambda hand: end(hand, hand.running(), Ending.APOLOGISED),
        Concern.REFUSED: lambda hand: with_part(hand, refused=True)[0],
        Concern.UNCERTAIN: lambda hand: with_part(hand, refused=False)[0],
        Concern.PAUSED: paused,
    }[concern]
    made = []
    for moment in range(5):
        made.append(make(hand))
        hand.advance(float(moment % 2))  # Some come at the same moment.
    found: list[int] = []
    after: Mark | None = None
    while page := hand.do(with_concern, concern, after, 2):
        found += [place.chat for place in page]
        after = page[-1]
    assert found == made
    assert hand.do(count_concerns)[concern] == 5


def test_chats_that_were_heard_lately_come_once_the_last_one_first(hand: Hand) -> None:
    chats_ = [hand.new_chat() for _ in range(4)]
    for number, chat in enumerate([*chats_, chats_[0], chats_[2]]):
        hand.advance(1.0)
        hand.do(store, hand.account, chat, message(number, str(chat)))
    first, second, third, fourth = chats_
    page = hand.do(heard_lately, None, 3)
    assert page.chats == [third, first, fourth]
    rest = hand.do(heard_lately, page.more, 3)
    assert (rest.chats, rest.more) == ([second], None)
