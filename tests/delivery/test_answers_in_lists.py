"""Answers that are stored, and receipts that are recorded, in one transaction for many chats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest

from bot.delivery.advance import RECEIVE, Delivery, Ended, Halt, Received, Send
from bot.domain.decisions.terms import Terms
from bot.domain.decisions.verdict import Apologise
from bot.domain.delivery import PartState, Sent
from bot.domain.ending import Cause, Close, Ending
from bot.domain.errors import StaleLease
from bot.domain.reply import PartBody, PartKind, Reply
from bot.domain.run import Run
from bot.leases.runtime import Runtime
from bot.runs.turn import STORE, NewAnswer
from bot.schedule import CronCalendar
from bot.texts import Words
from channels.console.channel import ConsoleChannel
from storage import chats, outbox, runs
from storage.engine.lane import LeftOut
from storage.notify import Wakeups
from storage.outbox import Attempt, Notice, PartOwner
from storage.views.evidence import gather_one
from tests.storage.kit import Hand, lives_through, opened
from tests.storage.rivals import first

NUMBER = 6


@dataclass
class Desk:
    """Moves of one process, by hand, without an agent or a provider."""

    hand: Hand
    rt: Runtime

    def running(self, number: int = NUMBER) -> Sequence[Run]:
        return [self.hand.running() for _ in range(number)]

    def answer(self, run: Run, *texts: str, may_send: bool = True) -> NewAnswer:
        case = self.hand.do(gather_one, run)
        reply = Reply(" ".join(texts or ("hi",)))
        bodies = [PartBody(text, "{}") for text in texts or ("hi",)]
        return NewAnswer(self.rt, case, PartKind.REPLY, bodies, reply=reply, may_send=may_send)

    def store(self, answers: Sequence[NewAnswer]) -> Sequence[Send | Exception | LeftOut | None]:
        return self.hand.do(STORE.together, answers)

    def begun(self, held: Sequence[Run], *texts: str) -> Sequence[Received]:
        """The first part of each run's reply, which its provider took."""
        sends = self.store([self.answer(run, *texts) for run in held])
        return [self.taken(run, send) for run, send in zip(held, sends, strict=True)]

    def taken(self, run: Run, send: object, *, permitted: bool = True) -> Received:
        assert isinstance(send, Send)
        to = self.hand.do(gather_one, run).recipient
        delivery = Delivery(self.rt, run, to, permitted, lambda _part: False)
        attempt = Attempt(send.part.id, send.part.attempts)
        return Received(delivery, attempt, Sent(f"m{send.part.id}-{send.part.attempts}"))

    def advance(self, taken: Sequence[Received]) -> Sequence[Any]:
        return self.hand.do(RECEIVE.together, taken)

    def everything(self) -> list[tuple[Any, ...]]:
        """All that these moves may write."""
        tables = ("runs", "outbox", "receipts", "events", "chats")
        return [row for table in tables for row in self.hand.rows(f"SELECT * FROM {table}")]


def at_desk(hand: Hand) -> Desk:
    account = hand.account
    return Desk(
        hand,
        Runtime(
            db=hand.db,
            clock=hand.clock,
            channels={account: ConsoleChannel(None)},
            terms=Terms(),
            words=Words.load(),
            wakeups=Wakeups(hand.clock),
            calendar=CronCalendar("UTC"),
        ),
    )


@pytest.fixture
def desk(database_url: str) -> Iterator[Desk]:
    with opened(database_url) as hand:
        yield at_desk(hand)


def test_many_answers_are_stored_and_their_first_parts_begin(desk: Desk) -> None:
    held = desk.running()
    told = desk.store([desk.answer(run, "one", "two") for run in held])
    for run, send in zip(held, told, strict=True):
        assert isinstance(send, Send)
        assert (send.part.run, send.part.state, send.part.body.text) == (run.id, "sending", "one")
        assert send.more
        assert desk.hand.do(outbox.reply, run.id) == "one two"
    states = desk.hand.rows("SELECT state, count(*) FROM outbox GROUP BY state ORDER BY state")
    assert states == [("pending", NUMBER), ("sending", NUMBER)]


def test_an_answer_without_a_permit_or_to_a_paused_chat_waits(desk: Desk) -> None:
    late, paused, free = desk.running(3)
    desk.hand.do(chats.pause, paused.chat, None)
    answers = [desk.answer(late, may_send=False), desk.answer(paused), desk.answer(free)]
    told = desk.store(answers)
    assert told[:2] == [None, None]
    assert isinstance(told[2], Send)


def test_whose_run_was_taken_stores_nothing_and_hurts_nobody(desk: Desk) -> None:
    held = desk.running()
    desk.hand.do(runs.give_back, held[1].claim, 0.0, "a test")
    told = desk.store([desk.answer(run) for run in held])
    assert isinstance(told[1], StaleLease)
    assert all(isinstance(send, Send) for n, send in enumerate(told) if n != 1)
    assert desk.hand.do(outbox.reply, held[1].id) is None
    assert desk.hand.do(outbox.of_run, held[1].id) == []


def test_answers_whose_commit_gave_no_answer_are_stored_once(desk: Desk) -> None:
    answers = [desk.answer(run, "one", "two") for run in desk.running()]
    told = desk.store(answers)
    before = desk.everything()
    assert desk.store(answers) == told
    assert desk.everything() == before


def test_an_apology_shares_the_list_and_keeps_its_cause(desk: Desk) -> None:
    failed, answered = desk.running(2)
    owed = Apologise(Cause.FAILURES, "5 failures without progress")
    sorry = replace(desk.answer(failed, "sorry"), kind=PartKind.APOLOGY, reply=None, owed=owed)
    told = desk.store([sorry, desk.answer(answered)])
    assert all(isinstance(send, Send) for send in told)
    found = desk.hand.find(failed)
    assert (found.cause, found.detail) == (Cause.FAILURES, "5 failures without progress")
    assert desk.hand.do(outbox.reply, failed.id) is None
    assert [part.kind for part in desk.hand.do(outbox.of_run, failed.id)] == [PartKind.APOLOGY]


def test_a_note_that_has_not_left_is_dropped_when_the_answer_comes(desk: Desk) -> None:
    slow, quick = desk.running(2)
    for run in (slow, quick):
        to = PartOwner(run.account, run.chat, run.id)
        note = PartBody("still working", "{}")
        desk.hand.do(outbox.post, to, PartKind.NOTICE, note, Notice.STILL_WORKING)
    desk.hand.advance(desk.rt.terms.work.still_working_after)
    desk.store([desk.answer(run) for run in (slow, quick)])
    notes = desk.hand.rows("SELECT DISTINCT state FROM outbox WHERE kind = 'notice'")
    assert notes == [("dropped",)]


def test_many_one_part_answers_end_their_runs_and_the_next_of_their_chats_become_ready(
    desk: Desk,
) -> None:
    held = desk.running()
    next_ = desk.hand.waiting(held[2].chat)
    told = desk.advance(desk.begun(held))
    for run, step in zip(held, told, strict=True):
        assert step == (Ended(Ending.ANSWERED, ready=run is held[2]), False)
        found = desk.hand.find(run)
        assert (found.state, found.ending) == ("ended", Ending.ANSWERED)
    assert desk.hand.find(next_).state == "ready"
    assert desk.hand.rows("SELECT * FROM events WHERE who = 'worker'") == []


def test_the_next_of_a_chat_goes_on_in_the_place_that_its_process_keeps(desk: Desk) -> None:
    hand, held = desk.hand, desk.running(3)
    next_ = [hand.waiting(run.chat) for run in held]
    *kept, other = desk.begun(held)
    told = [step for step, _ in desk.advance([*(keeping(hand, one) for one in kept), other])]
    for run, step in zip(next_, told[:2], strict=False):
        assert isinstance(step, Ended)
        assert not step.ready
        assert step.follows is not None
        assert step.follows.run == hand.find(run)
        assert step.follows.run.holder == hand.holder
    assert told[2] == Ended(Ending.ANSWERED, ready=True)
    assert [hand.find(run).state for run in next_] == ["running", "running", "ready"]


def keeping(hand: Hand, one: Received) -> Received:
    return replace(one, delivery=replace(one.delivery, heir=hand.claimant()))


def test_a_place_is_of_no_use_to_a_chat_without_more_or_to_a_paused_one(desk: Desk) -> None:
    hand, (done, paused) = desk.hand, desk.running(2)
    next_ = hand.waiting(paused.chat)
    taken = [keeping(hand, one) for one in desk.begun([done, paused])]
    hand.do(chats.pause, paused.chat, None)
    assert desk.advance(taken) == [(Ended(Ending.ANSWERED, ready=False), False)] * 2
    assert hand.find(next_).state == "waiting"


def test_a_next_run_that_can_t_be_read_keeps_no_answer_from_its_end(desk: Desk) -> None:
    hand, [run] = desk.hand, desk.running(1)
    next_ = hand.waiting(run.chat)
    broken = "INSERT INTO inbound (account, chat, run, request_id, kind, text, received_at, quoted)"
    values = f"VALUES ({run.account}, {run.chat}, {next_.id}, 'x', 'text', '', 1, 'no JSON')"
    hand.do(lambda tx: tx.run(f"{broken} {values}"))
    [one] = [keeping(hand, one) for one in desk.begun([run])]
    with pytest.raises(ValueError, match="Expecting value"):
        desk.advance([one])
    assert hand.do(RECEIVE.alone, one) == (Ended(Ending.ANSWERED, ready=True), False)
    assert hand.find(next_).state == "ready"


def test_nobody_becomes_ready_in_a_paused_chat(desk: Desk) -> None:
    [run] = desk.running(1)
    next_ = desk.hand.waiting(run.chat)
    taken = desk.begun([run])
    desk.hand.do(chats.pause, run.chat, None)
    assert desk.advance(taken) == [(Ended(Ending.ANSWERED, ready=False), False)]
    assert desk.hand.find(next_).state == "waiting"


def test_the_next_parts_of_many_answers_begin_in_the_same_transaction(desk: Desk) -> None:
    held = desk.running()
    told = desk.advance(desk.begun(held, "one", "two"))
    for run, (send, doubled) in zip(held, told, strict=True):
        assert isinstance(send, Send)
        assert not doubled
        assert (send.part.body.text, send.part.state, send.more) == ("two", "sending", False)
        one, two = desk.hand.do(outbox.of_run, run.id)
        assert (one.state, two) == (PartState.SENT, send.part)
    last = [desk.taken(run, send) for run, (send, _) in zip(held, told, strict=True)]
    ended = (Ended(Ending.ANSWERED, ready=False), False)
    assert desk.advance(last) == [ended] * NUMBER


def test_the_next_part_waits_for_its_permit_and_its_receipt_is_recorded(desk: Desk) -> None:
    held = desk.running(2)
    begun, waits = desk.begun(held, "one", "two")
    waits = replace(waits, delivery=replace(waits.delivery, permitted=False))
    told = desk.advance([begun, waits])
    assert isinstance(told[0][0], Send)
    assert told[1] == (Halt.NEEDS_PERMIT, False)
    states = [part.state for part in desk.hand.do(outbox.of_run, held[1].id)]
    assert states == [PartState.SENT, PartState.PENDING]


def test_a_receipt_counts_of_whoever_lost_the_run(desk: Desk) -> None:
    held = desk.running(3)
    taken = desk.begun(held)
    desk.hand.do(runs.end_live, held[1].id, Close(Ending.WITHDRAWN, Cause.STOPPED))
    told = desk.advance(taken)
    assert told[1] is LeftOut.ALONE
    assert desk.hand.do(RECEIVE.alone, taken[1]) == (Halt.LOST, False)
    [part] = desk.hand.do(outbox.of_run_any, held[1].id)
    assert part.state is PartState.SENT
    assert [desk.hand.find(run).ending for run in held] == ["answered", "withdrawn", "answered"]


def test_a_second_receipt_is_moved_by_itself_and_is_a_double(desk: Desk) -> None:
    held = desk.running(2)
    taken = desk.begun(held)
    desk.hand.do(outbox.receive, taken[0].attempt, "by a callback")
    told = desk.advance(taken)
    assert told[0] is LeftOut.ALONE
    step, doubled = desk.hand.do(RECEIVE.alone, taken[0])
    assert (step, doubled) == (Ended(Ending.ANSWERED, ready=False), True)


def test_receipts_whose_commit_gave_no_answer_are_recorded_once(desk: Desk) -> None:
    taken = desk.begun(desk.running())
    desk.advance(taken)
    before = desk.everything()
    assert desk.advance(taken) == [LeftOut.ALONE] * NUMBER
    assert [desk.hand.do(RECEIVE.alone, one) for one in taken] == [(Halt.LOST, False)] * NUMBER
    found = desk.hand.rows("SELECT outbox FROM receipts GROUP BY outbox HAVING count(*) > 1")
    assert found == []
    assert {row[:3] for row in desk.everything()} >= {row[:3] for row in before}


def test_what_is_out_of_the_ordinary_is_left_to_be_moved_alone_and_unchanged(desk: Desk) -> None:
    held = desk.running(4)
    taken = desk.begun(held, "one", "two")
    desk.hand.do(outbox.doubt, taken[0].attempt, "a time-out")
    desk.hand.do(chats.park, held[1].chat, "blocked")
    desk.hand.do(chats.opt_out, held[2].chat, out=True)
    before = desk.everything()
    assert desk.advance(taken[:3]) == [LeftOut.ALONE] * 3
    assert desk.everything() == before
    assert isinstance(desk.advance(taken[3:])[0][0], Send)


@pytest.mark.parametrize("move", ["store", "advance"])
def test_who_dies_between_any_two_statements_of_a_list_has_changed_nothing(
    desk: Desk, move: str
) -> None:
    held = desk.running(3)
    desk.hand.waiting(held[0].chat)
    if move == "store":
        together: Any = STORE.together
        members: Sequence[Any] = [desk.answer(run, "one", "two") for run in held]
    else:
        together = RECEIVE.together
        members = [*desk.begun(held[:2]), *desk.begun(held[2:], "one", "two")]
    before = desk.everything()
    for statements in count(1):
        if lives_through(desk.hand, together, members, statements):
            break
        assert desk.everything() == before
    assert statements >= 3


def test_lists_of_two_processes_that_overlap_wait_for_nothing(postgres_url: str) -> None:
    with opened(postgres_url, pool=4) as hand:
        desk = at_desk(hand)
        held = desk.running()
        taken = desk.begun(held)
        with first(hand) as other:
            other.do(RECEIVE.together, taken[:3])
            assert desk.advance(taken[1:])[:2] == [LeftOut.LOCKED] * 2
            other.commit()
        assert desk.advance(taken[:3]) == [LeftOut.ALONE] * 3
        answered = hand.value("SELECT count(*) FROM runs WHERE ending = 'answered'")
        assert answered == NUMBER
