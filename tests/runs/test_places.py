"""Places at agents: no more than CONCURRENCY are called, and who waits for a place here holds up
nothing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bot.domain.turn import Turn
from bot.runs import places
from storage import runs
from tests.kit.agents import Echo, Held
from tests.kit.conversation import PATIENT, people, post, until_running
from tests.limits import PATIENCE
from tests.world import Running, World

ADA, BEN = people(2)


@dataclass
class Counted(Echo):
    """Counts how many of its calls go on together, and the attempts that it is told of."""

    now: int = 0
    most: int = 0

    async def __call__(self, turn: Turn) -> str:
        assert turn.attempt == 1
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await turn.step("look around", lambda: "nothing")
            return await super().__call__(turn)
        finally:
            self.now -= 1


async def test_never_are_more_agents_called_than_concurrency_allows(world: World) -> None:
    agent = Counted()
    running = await world.start(agent=agent, concurrency=2, **PATIENT)
    everybody = people(12)
    for word in ("one", "two", "three"):
        for person in everybody:
            await post(running, person.text(f"{word} {person.number}"))
    await world.settled()
    assert all(len(world.telegram.texts(person.number)) == 3 for person in everybody)
    assert agent.most == 2


async def with_one_ahead(world: World, agent: Held) -> Running:
    """A process whose one agent has Ada's message, and which has claimed Ben's already, since
    places became free quickly of late."""
    world.stop_time()
    running = await world.start(agent=agent, concurrency=1, **PATIENT)
    worker = running.process.worker
    assert worker is not None
    for _ in range(10):
        worker.places.freed.add(world.clock.monotonic())
    await post(running, ADA.text("one"))
    await agent.begun.wait()
    await post(running, BEN.text("two"))
    await until_running(world, 2)
    return running


async def test_a_run_that_was_claimed_ahead_begins_when_a_place_is_free(world: World) -> None:
    agent = Held()
    await with_one_ahead(world, agent)
    assert agent.texts == ["one"]
    agent.go.set()
    world.let_time_go_on()
    await world.settled()
    assert agent.texts == ["one", "two"]
    assert [turn.attempt for turn in agent.turns] == [1, 1]


async def test_who_leaves_lets_go_what_it_claimed_ahead_as_if_it_had_not(world: World) -> None:
    agent, heir = Held(), Held()
    leaver = await with_one_ahead(world, agent)
    assert leaver.process.worker is not None
    leaver.process.worker.stop_claiming()
    sql = "SELECT attempts, deaths, failures, deadline_at FROM runs WHERE state = 'ready'"
    assert await world.until(sql, bool) == [(0, 0, 0, None)]
    world.let_time_go_on()
    await world.start(agent=heir, **PATIENT)
    await heir.begun.wait()
    heir.go.set()
    agent.go.set()
    await world.settled()
    assert heir.texts == ["two"]
    assert [turn.interrupted for turn in heir.turns] == [False]
    assert agent.texts == ["one"]


async def test_a_claim_that_comes_just_as_the_process_leaves_calls_no_agent_too_many(
    world: World,
) -> None:
    agent = Held()
    running = await world.start(agent=agent, concurrency=1, **PATIENT)
    await post(running, ADA.text("one"))
    await agent.begun.wait()
    await post(running, BEN.text("two"))
    worker = running.process.worker
    assert worker is not None
    rooms = dict.fromkeys(running.process.rt.mine, 1)
    [run] = await running.process.rt.db.write(runs.claim, worker._ctx.claimant(), rooms, 1)
    worker.take(run)
    worker.stop_claiming()
    sql = "SELECT attempts FROM runs WHERE state = 'ready'"
    assert await world.until(sql, bool) == [(0,)]
    assert agent.texts == ["one"]
    agent.go.set()


async def test_what_was_claimed_ahead_is_let_go_when_the_agents_became_slow(world: World) -> None:
    agent = Held()
    running = await with_one_ahead(world, agent)
    worker = running.process.worker
    assert worker is not None
    world.advance(5)
    sql = "SELECT attempts FROM runs WHERE state = 'ready'"
    assert await world.until(sql, bool) == [(0,)]
    assert worker.places.room() == 0
    agent.go.set()
    world.let_time_go_on()
    await world.settled()
    assert agent.texts == ["one", "two"]


async def test_a_run_that_is_stopped_while_it_waits_for_a_place_calls_no_agent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "AHEAD_AT_MOST", PATIENCE)  # The loop's time, which goes on.
    agent = Held()
    running = await with_one_ahead(world, agent)
    await post(running, BEN.text("/stop"))
    await until_running(world, 1)
    agent.go.set()
    world.let_time_go_on()
    await world.settled()
    assert agent.texts == ["one"]
