"""Agents that fail, wait, give up or never come back: the person always hears something once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest

from bot.agents.function import FunctionAgent
from bot.domain.errors import GiveUp, Retry
from bot.domain.turn import Turn
from bot.texts import Text, Words
from bot.threads import Threads
from tests.fakes.telegram import faults
from tests.fakes.updates import Person
from tests.kit.agents import Echo
from tests.kit.conversation import ADA, BOB, PATIENT, endings, post
from tests.kit.passing import settle
from tests.world import World

WORDS = Words.load()
APOLOGY = WORDS.say(Text.APOLOGY)
TOO_LONG = WORDS.say(Text.APOLOGY_DEADLINE)
RUNS = "SELECT ending, detail, failures FROM runs ORDER BY id"


def put_off(seconds: int) -> str:
    """The detail of a run whose agent wanted to be asked after the deadline."""
    said = "the agent asked to be tried again"
    return f"it was asked to wait {seconds} s, past its deadline: {said}"


class Broken:
    """Fails so many times, and then answers."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.calls: Counter[str] = Counter()

    async def __call__(self, turn: Turn) -> str:
        self.calls[turn.text] += 1
        if self.calls.total() <= self.times:
            raise RuntimeError("the model broke")
        return f"re: {turn.text}"


async def test_two_failures_are_forgiven(world: World) -> None:
    agent = Broken(2)
    running = await world.start(agent=agent, **PATIENT)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await settle(world)
    assert world.telegram.texts(ADA) == ["re: hello"]
    assert agent.calls == {"hello": 3}


async def test_three_failures_lead_to_one_apology_and_its_button_to_one_new_run(
    world: World,
) -> None:
    agent = Broken(3)
    running = await world.start(agent=agent, **PATIENT)
    ada = Person(ADA)
    assert await post(running, ada.text("hello")) == [200]
    await settle(world)
    assert world.telegram.texts(ADA) == [APOLOGY]
    assert await world.rows(RUNS) == [("apologised", "3 failures without progress", 3)]
    [apology] = world.telegram.messages(ADA)
    [[button]] = apology.buttons
    data = button["callback_data"]
    presses = [ada.press(data, query=f"cq{n}") for n in (1, 2)]
    assert await post(running, *presses, presses[0]) == [200] * 3
    await settle(world)
    assert await world.rows("SELECT count(*) FROM runs") == [(2,)]
    assert world.telegram.texts(ADA).count("re: hello") == 1
    assert agent.calls == {"hello": 4}


async def test_the_word_asks_again_where_there_are_no_buttons(world: World) -> None:
    await world.start(agent=Broken(3), **PATIENT)
    await world.twilio.inbound("hello")
    await settle(world)
    [apology] = world.twilio.texts()
    assert apology.startswith(APOLOGY)
    assert "try again" in apology
    await world.twilio.inbound("Try again")
    await settle(world)
    assert world.twilio.texts().count("re: hello") == 1


async def test_an_agent_that_never_returns_is_apologised_for_at_its_deadline(
    world: World,
) -> None:
    async def stuck(turn: Turn) -> str:
        await asyncio.Event().wait()
        return "never"

    running = await world.start(agent=stuck, run_deadline=0.6, **PATIENT)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await world.settled()
    assert world.telegram.texts(ADA) == [TOO_LONG]
    assert await world.rows(RUNS) == [("apologised", "the deadline passed", 0)]


async def test_asking_to_be_tried_later_counts_nothing_but_ends_where_no_try_is_left(
    world: World,
) -> None:
    asked: list[float] = []

    async def later(turn: Turn) -> str:
        asked.append(turn.deadline)
        raise Retry(400.0)

    running = await world.start(agent=later, run_deadline=900.0, **PATIENT)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await settle(world)
    assert len(asked) == 3
    # Time in which nobody looks, once the run is due, is not the agent's.
    assert max(asked) - min(asked) < 100.0
    assert world.telegram.texts(ADA) == [APOLOGY]
    assert await world.rows(RUNS) == [("apologised", put_off(400), 0)]


@pytest.mark.parametrize("after", [0.0, -5.0, float("nan")])
async def test_asking_to_be_tried_at_once_is_no_endless_loop(world: World, after: float) -> None:
    asked = 0

    async def impatient(turn: Turn) -> str:
        nonlocal asked
        asked += 1
        raise Retry(after)

    running = await world.start(agent=impatient, run_deadline=20.0, **PATIENT)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await settle(world)
    assert 2 <= asked <= 21
    assert world.telegram.texts(ADA) == [TOO_LONG]


async def test_one_wait_that_is_longer_than_the_deadline_is_not_waited_for(world: World) -> None:
    async def tomorrow(turn: Turn) -> str:
        raise Retry(80_000.0)

    running = await world.start(agent=tomorrow, run_deadline=900.0, **PATIENT)
    assert await post(running, Person(ADA).text("hello")) == [200]
    began = world.clock.wall()
    await settle(world)
    assert world.clock.wall() - began < 40_000.0
    assert world.telegram.texts(ADA) == [APOLOGY]
    assert await world.rows(RUNS) == [("apologised", put_off(80_000), 0)]


async def test_giving_up_says_what_the_agent_says(world: World) -> None:
    async def give_up(turn: Turn) -> str:
        raise GiveUp("I can't read this file.")

    running = await world.start(agent=give_up, **PATIENT)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await settle(world)
    [told] = world.telegram.messages(ADA)
    assert told.text == "I can't read this file."
    assert told.buttons
    assert [row[0] for row in await world.rows(RUNS)] == ["apologised"]


async def test_giving_up_without_a_word_is_still_no_silence(world: World) -> None:
    async def give_up(turn: Turn) -> str:
        raise GiveUp(" ")

    running = await world.start(agent=give_up, **PATIENT)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await settle(world)
    assert world.telegram.texts(ADA) == [APOLOGY]


async def test_an_empty_answer_becomes_an_honest_one_and_none_is_silence(world: World) -> None:
    async def nothing(turn: Turn) -> str | None:
        return "" if turn.text == "say something" else None

    running = await world.start(agent=nothing, **PATIENT)
    ada, bob = Person(ADA), Person(BOB)
    assert await post(running, ada.text("say something"), bob.text("hm")) == [200, 200]
    await settle(world)
    assert world.telegram.texts(ADA) == [WORDS.say(Text.EMPTY_ANSWER)]
    assert world.telegram.texts(BOB) == []
    assert await endings(world) == [("say something", "answered"), ("hm", "silent")]


async def test_a_function_that_blocks_holds_up_nobody_else(world: World) -> None:
    def blocks(turn: Turn) -> str:
        if turn.text == "block":
            time.sleep(1.5)  # noqa: TID251 - what an agent must not be able to do to us
        return f"re: {turn.text}"

    agent = FunctionAgent("blocks", blocks, Threads(10))
    running = await world.start(agent=agent, **PATIENT)
    assert await post(running, Person(ADA).text("block"), Person(BOB).text("hello")) == [200] * 2
    sql = "SELECT i.text FROM runs r JOIN inbound i ON i.run = r.id WHERE r.state = 'ended'"
    rows = await world.until(sql, lambda found: len(found) == 1)
    assert rows == [("hello",)]
    await world.settled()
    assert world.telegram.texts(ADA) == ["re: block"]


async def test_an_apology_that_is_refused_ends_the_run_as_failed(world: World) -> None:
    world.telegram.fail("sendMessage", faults.blocked())
    running = await world.start(agent=Broken(3), **PATIENT)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await settle(world)
    assert [row[0] for row in await world.rows(RUNS)] == ["failed"]
    assert world.telegram.texts(ADA) == []


async def test_a_bot_whose_token_is_refused_keeps_its_answers_and_does_not_hammer(
    world: World,
) -> None:
    refused = world.telegram.fail("sendMessage", faults.unauthorized(), times=None)
    agent = Echo()
    running = await world.start(agent=agent, **PATIENT)
    asked = world.telegram.fail("getMe", faults.unauthorized(), times=None)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await world.until("SELECT count(*) FROM accounts WHERE down_since IS NOT NULL",
                      lambda rows: rows[0][0] == 1)  # fmt: skip
    for _ in range(5):
        await world.rows("SELECT 1")
        world.advance(5.0)
    assert len(refused.hits) == 1
    assert await world.rows("SELECT state FROM outbox") == [("pending",)]
    refused.cancel()
    asked.cancel()
    await running.stop()
    await world.start(agent=agent, **PATIENT)
    await settle(world)
    assert world.telegram.texts(ADA) == ["re: hello"]
    assert agent.calls == {"hello": 1}
