"""Calls to providers: the right to begin one, and the record of its outcome."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from bot.delivery.notices import to_chat
from bot.domain.delivery import LimitOf, NotSent, Outcome, Sent
from bot.domain.ports import STILL_OURS, Recipient, SendRef
from bot.domain.reply import PartBody
from storage import chats, outbox
from storage.outbox import Part
from tests.fakes.updates import Person
from tests.kit.agents import Echo, repeats
from tests.kit.conversation import ADA, post
from tests.world import Running, World


async def a_sent_part(world: World, running: Running) -> Part:
    assert await post(running, Person(ADA).text("hello")) == [200]
    await world.settled()
    [(number,)] = await world.rows("SELECT id FROM outbox WHERE kind = 'reply'")
    part = await running.process.rt.db.read(outbox.get, number)
    assert part is not None
    return part


async def sent_by(running: Running, part: Part) -> Outcome:
    """The outcome of calling the provider for this part."""
    ctx = running.process.ctx
    to = to_chat(await ctx.rt.db.read(chats.get, part.chat))
    async with ctx.sends.call(ctx.rt.channels[part.account], to, part) as outcome:
        return outcome


async def test_only_the_holder_that_marked_a_part_sends_it(world: World) -> None:
    running = await world.start(agent=repeats)
    part = await a_sent_part(world, running)
    me = running.process.lease.holder()
    earlier = replace(part, holder=me - 1, attempts=2)
    outcome = await sent_by(running, earlier)
    assert isinstance(outcome, NotSent)
    assert world.telegram.texts(ADA) == ["hello"]
    assert isinstance(await sent_by(running, replace(earlier, holder=me)), Sent)


async def test_a_send_learns_while_it_connects_that_its_lease_is_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await world.start(agent=repeats)
    part = await a_sent_part(world, running)
    lease, channel = running.process.lease, running.process.rt.channels[part.account]
    asked: list[bool] = []

    async def slow(*_args: object) -> Outcome:
        asked.append(STILL_OURS.get()())
        lease.leave()
        asked.append(STILL_OURS.get()())
        return NotSent("no connection in time")

    monkeypatch.setattr(type(channel), "send", slow)
    outcome = await sent_by(running, replace(part, holder=lease.holder(), attempts=2))
    assert isinstance(outcome, NotSent)
    assert asked == [True, False]
    assert STILL_OURS.get()()


async def test_a_limit_that_names_no_wait_is_retried_at_growing_moments(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await world.start(agent=repeats)
    part = await a_sent_part(world, running)
    me = running.process.lease.holder()
    channel = running.process.rt.channels[part.account]

    async def limited(_to: Recipient, _body: PartBody, _ref: SendRef) -> Outcome:
        return NotSent("too many requests", "20429", limited=LimitOf.UNTOLD)

    monkeypatch.setattr(type(channel), "send", lambda _self, *args: limited(*args))
    waits = []
    for attempts in (1, 3, 5, 12):
        outcome = await sent_by(running, replace(part, holder=me, attempts=attempts))
        assert isinstance(outcome, NotSent)
        waits.append(outcome.retry_after or 0.0)
    bounds = [(0.5, 1), (2, 4), (8, 16), (30, 60)]
    assert all(low <= wait <= high for wait, (low, high) in zip(waits, bounds, strict=True))


@pytest.mark.parametrize("receipt", ["m\ud800", "m\x00"])
async def test_an_outcome_that_cannot_be_written_ends_as_unknown(
    world: World, monkeypatch: pytest.MonkeyPatch, receipt: str
) -> None:
    running = await world.start(agent=Echo())
    [channel] = [c for c in running.process.rt.channels.values() if c.name == "telegram"]
    calls = []

    async def send(_to: Recipient, body: PartBody, ref: SendRef) -> Outcome:
        calls.append(body.text)
        return Sent(receipt if ref.part == 1 else f"fine-{ref.part}-{ref.attempt}")

    monkeypatch.setattr(type(channel), "send", lambda _self, *args: send(*args))
    assert await post(running, Person(ADA).text("hello")) == [200]
    await world.settled()
    [(state,)] = await world.rows("SELECT state FROM outbox WHERE kind = 'reply'")
    [(ending,)] = await world.rows("SELECT ending FROM runs")
    assert (state, ending) in {("uncertain", "uncertain"), ("sent", "answered")}
    assert calls.count("re: hello") == 1


async def test_a_line_that_breaks_while_a_call_is_told_of_loses_no_outcome(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    broken: list[str] = []

    def breaks(record: logging.LogRecord) -> bool:
        if record.getMessage().startswith("the provider said"):
            broken.append(record.getMessage())
            raise RuntimeError("no line today")
        return True

    caplog.set_level(logging.DEBUG, "answerback.sends")
    logs = logging.getLogger("answerback.sends")
    logs.addFilter(breaks)
    try:
        await a_sent_part(world, await world.start(agent=repeats))
    finally:
        logs.removeFilter(breaks)
    assert broken
    assert await world.rows("SELECT ending FROM runs") == [("answered",)]


async def test_while_answers_wait_for_their_moment_none_is_marked_as_being_sent(
    world: World,
) -> None:
    running = await world.start(agent=repeats)
    world.stop_time()
    people = [Person(700_910_000 + n) for n in range(12)]
    for number, person in enumerate(people, 1):
        assert await post(running, person.text("hi")) == [200]
        replied = "SELECT count(*) FROM runs WHERE replied"
        await world.until(replied, lambda rows: rows[0][0] == number)  # noqa: B023 - asked in this turn
    states = "SELECT state, count(*) FROM outbox WHERE kind = 'reply' GROUP BY state ORDER BY state"
    await world.until(states, lambda rows: rows[-1] == ("sent", 1))
    assert await world.rows(states) == [("pending", 11), ("sent", 1)]


async def test_a_process_that_leaves_while_answers_wait_for_their_moment_doubts_none(
    world: World,
) -> None:
    leaver = await world.start(agent=repeats)
    for limiter in leaver.process.ctx.limiters.values():
        limiter.share(20)
    people = [Person(700_900_000 + n) for n in range(12)]
    for person in people:
        assert await post(leaver, person.text("hi")) == [200]
    await world.until("SELECT count(*) FROM runs WHERE replied", lambda rows: rows[0][0] == 12)
    await leaver.stop(grace=1.0)
    states = await world.rows("SELECT DISTINCT state FROM outbox WHERE kind = 'reply' ORDER BY 1")
    assert {state for (state,) in states} <= {"pending", "sent"}
    await world.start(agent=repeats)
    await world.settled()
    assert [world.telegram.texts(person.number) for person in people] == [["hi"]] * 12
