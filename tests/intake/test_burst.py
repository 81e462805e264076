"""Bursts: messages that come while a turn runs are answered together, in order."""

from __future__ import annotations

import asyncio

from bot.domain.decisions.terms import Burst
from bot.domain.turn import Turn
from tests.fakes.updates import Person
from tests.kit.agents import Held, repeats
from tests.world import World

RUNS = "SELECT id, state, not_before - created_at FROM runs ORDER BY id"
OPEN = "SELECT count(*) FROM runs WHERE state <> 'ended'"
STANDALONE_ROWS = "SELECT count(*) FROM inbound WHERE run IS NULL"


async def test_b23_a_burst_over_two_processes_is_answered_in_order_without_overlap(
    world: World,
) -> None:
    agent = Held()
    one = await world.start(agent=agent)
    two = await world.start(agent=agent)
    ada = Person(700100212)
    await one.post_update(ada.text("hi"))
    await agent.begun.wait()
    await two.post_update(ada.text("I need a refund"))
    await one.post_update(ada.text("order 5512"))
    agent.go.set()
    await world.settled()
    assert agent.texts == ["hi", "I need a refund\norder 5512"]
    assert world.telegram.texts(700100212) == agent.texts
    assert agent.overlaps == 0
    assert await world.rows(STANDALONE_ROWS) == [(0,)]


async def test_b23_what_two_doors_took_in_at_once_is_read_in_the_order_of_writing(
    world: World,
) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    ada = Person(700100212)
    await process.post_update(ada.text("hi"))
    await agent.begun.wait()
    written = [ada.text(words) for words in ("one", "two", "three")]
    for update in reversed(written):
        await process.post_update(update)
    agent.go.set()
    await world.settled()
    assert agent.texts == ["hi", "one\ntwo\nthree"]


async def test_b23_each_message_has_its_own_turn_where_the_operator_wants_that(
    world: World,
) -> None:
    agent = Held()
    process = await world.start(agent=agent, burst=Burst.EACH)
    ada = Person(700100212)
    said = ["hi", "I need a refund", "order 5512"]
    for text in said:
        await process.post_update(ada.text(text))
    agent.go.set()
    await world.settled()
    assert agent.texts == said
    assert world.telegram.texts(700100212) == said


async def test_ten_messages_alternating_over_two_processes_are_each_answered_once(
    world: World,
) -> None:
    agent = Held()
    agent.go.set()
    processes = [await world.start(agent=agent), await world.start(agent=agent)]
    ada = Person(700100213)
    said = [f"message {n}" for n in range(10)]
    for number, text in enumerate(said):
        response = await processes[number % 2].post_update(ada.text(text))
        assert response.status_code == 200
    await world.settled()
    assert agent.overlaps == 0
    assert "\n".join(world.telegram.texts(700100213)).split("\n") == said
    assert await world.rows(STANDALONE_ROWS) == [(0,)]


async def test_b26_a_long_turn_holds_up_its_own_chat_and_no_other(world: World) -> None:
    slow = asyncio.Event()

    async def agent(turn: Turn) -> str:
        if turn.text == "slow":
            await slow.wait()
        return turn.text

    process = await world.start(agent=agent, concurrency=4)
    a = Person(700100214)
    await process.post_update(a.text("slow"))
    await process.post_update(a.text("and this"))
    others = [Person(700200000 + n) for n in range(20)]
    for person in others:
        await process.post_update(person.text("hi"))
    await world.until(OPEN, lambda rows: rows[0][0] == 2)
    assert world.telegram.texts(700100214) == []
    assert all(world.telegram.texts(person.number) == ["hi"] for person in others)
    slow.set()
    await world.settled()
    assert world.telegram.texts(700100214) == ["slow", "and this"]


async def test_a_quiet_time_gathers_what_is_written_in_it(world: World) -> None:
    agent = Held()
    agent.go.set()
    process = await world.start(agent=agent, quiet_ms=5000)
    world.stop_time()
    ada = Person(700100215)
    await process.post_update(ada.text("one"))
    world.advance(3)
    await process.post_update(ada.text("two"))
    world.advance(3)
    await process.post_update(ada.text("three"))
    assert agent.turns == []
    world.advance(6)
    await world.settled()
    assert agent.texts == ["one\ntwo\nthree"]


async def test_a_quiet_time_is_in_the_row_and_outlives_the_process(world: World) -> None:
    process = await world.start(agent=repeats, quiet_ms=5000)
    world.stop_time()
    await process.post_update(Person(700100215).text("one"))
    [(_, state, wait)] = await world.rows(RUNS)
    assert (state, round(wait)) == ("ready", 5)
    await process.die()
    await world.start(agent=repeats, quiet_ms=5000)
    assert world.telegram.texts(700100215) == []
    world.advance(6)
    await world.settled()
    assert world.telegram.texts(700100215) == ["one"]


async def test_who_never_stops_writing_is_answered_all_the_same(world: World) -> None:
    process = await world.start(agent=repeats, quiet_ms=10_000)
    world.stop_time()
    ada = Person(700100215)
    for number in range(6):
        await process.post_update(ada.text(f"{number}"))
        world.advance(9)
    [(_, _, wait)] = await world.rows(RUNS)
    assert wait <= 50
    await world.settled()
    assert world.telegram.texts(700100215) == ["0\n1\n2\n3\n4\n5"]
