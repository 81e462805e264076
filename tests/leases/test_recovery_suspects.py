"""A message that kills the process, and the neighbours that it must not cost their answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import pytest

from bot.domain.turn import Turn
from tests.fakes.updates import Person
from tests.kit.agents import Gated
from tests.kit.conversation import ADA, PATIENT, endings, people, post, until_running
from tests.kit.passing import settle
from tests.limits import until
from tests.world import Running, World

BOOM = "BOOM"


@dataclass
class Deadly:
    """Answers everybody, and dies of one message: at first when all `at_work` are in flight.

    A neighbour's first two attempts last as long as the process; the third one answers.
    """

    world: World
    at_work: int
    deaths: int = 0
    calls: Counter[int] = field(default_factory=Counter)
    attempts_then: list[int] = field(default_factory=list)
    together: asyncio.Event = field(default_factory=asyncio.Event)
    died: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, turn: Turn) -> str:
        self.calls[turn.run_id] += 1
        if self.calls.total() >= self.at_work * (self.deaths + 1):
            self.together.set()
        if turn.text == BOOM:
            await self._die(turn)
        if self.calls[turn.run_id] <= 2 and self.deaths < 2:
            await asyncio.Event().wait()
        return f"re: {turn.text}"

    async def _die(self, turn: Turn) -> None:
        if self.deaths < 2:
            await self.together.wait()
        else:
            # A neighbour whose send is cut off would rightly be uncertain: not what this tells.
            others = "SELECT count(*) FROM runs WHERE state = 'running' AND id <> :run"
            await until(lambda: self._none(others, turn.run_id))
        [row] = await self.world.rows("SELECT attempts FROM runs WHERE id = :run", run=turn.run_id)
        self.attempts_then.append(row[0])
        self.together.clear()
        self.deaths += 1
        self.world.running[-1].kill()
        self.died.set()
        raise asyncio.CancelledError("the process died in its agent")

    async def _none(self, counted: str, run: int) -> bool:
        rows = await self.world.rows(counted, run=run)
        return bool(rows[0][0] == 0)


async def supervise(world: World, agent: Deadly, running: Running) -> int:
    """Begin a process after each death, until all is settled; how often it was begun."""
    starts = 1
    while True:
        dying = asyncio.create_task(agent.died.wait())
        settling = asyncio.create_task(settle(world))
        await asyncio.wait((dying, settling), return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        if not agent.died.is_set():
            await settling
            return starts
        settling.cancel()
        await running.die()
        agent.died.clear()
        running = await world.start(agent=agent, **PATIENT)
        starts += 1


@pytest.mark.long
async def test_a_poison_is_apologised_for_at_its_fifth_death_and_thirty_neighbours_are_answered(
    world: World,
) -> None:
    agent = Deadly(world, at_work=31)
    running = await world.start(agent=agent, **PATIENT)
    poisoner, *innocents = people(31)
    assert await post(running, poisoner.text(BOOM)) == [200]
    for person in innocents:
        await running.post_update(person.text(f"hi from {person.number}"))
    await supervise(world, agent, running)
    assert agent.deaths == 5
    assert dict(await endings(world)) == {BOOM: "apologised"} | {
        f"hi from {p.number}": "answered" for p in innocents
    }
    for person in innocents:
        assert world.telegram.texts(person.number) == [f"re: hi from {person.number}"]
    assert len(world.telegram.texts(poisoner.number)) == 1
    charged = await world.rows("SELECT failures FROM runs ORDER BY failures DESC LIMIT 2")
    assert [row[0] for row in charged] == [3, 0]


async def test_b74_a_message_that_kills_the_worker_ends_and_its_chat_goes_on(world: World) -> None:
    agent = Deadly(world, at_work=6)
    running = await world.start(agent=agent, **PATIENT)
    ada = Person(ADA)
    assert await post(running, ada.text(BOOM)) == [200]
    others = people(5)
    for person in others:
        await running.post_update(person.text("hi"))
    await supervise(world, agent, running)
    assert all(attempts >= number for number, attempts in enumerate(agent.attempts_then, 1))
    assert [world.telegram.texts(p.number) for p in others] == [["re: hi"]] * 5
    last = world.running[-1]
    assert await post(last, ada.text("are you there?")) == [200]
    await settle(world)
    apology, answer = world.telegram.texts(ADA)
    assert "re:" not in apology
    assert answer == "re: are you there?"
    told = await world.rows("SELECT ending, detail FROM runs WHERE ending = 'apologised'")
    assert told == [("apologised", "3 failures without progress")]


@pytest.mark.long
async def test_a_storm_of_unrelated_kills_apologises_for_nothing(world: World) -> None:
    agent = Gated()
    crowd = people(20)
    running = await world.start(agent=agent, **PATIENT)
    for person in crowd:
        await running.post_update(person.text(f"hi from {person.number}"))
    for _ in range(9):
        await until_running(world, await _claimable(world))
        await running.die()
        running = await world.start(agent=agent, **PATIENT)
    agent.go.set()
    await settle(world)
    assert {ending for _, ending in await endings(world)} == {"answered"}
    for person in crowd:
        assert world.telegram.texts(person.number) == [f"re: hi from {person.number}"]


async def _claimable(world: World) -> int:
    """The number of runs that one process takes: all, or once they are suspects one."""
    rows = await world.rows("SELECT quarantined, count(*) FROM runs GROUP BY 1")
    found: dict[bool, int] = {bool(apart): count for apart, count in rows}
    return found.get(False, 0) + min(1, found.get(True, 0))


async def test_a_death_while_leaving_counts_against_nobody(world: World) -> None:
    agent = Gated()
    running = await world.start(agent=agent, **PATIENT)
    assert await post(running, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    leaving = asyncio.create_task(running.stop(grace=30.0))
    await world.until("SELECT draining FROM holders", lambda rows: bool(rows[0][0]))
    running.kill()
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    await running.die()
    agent.go.set()
    await world.start(agent=agent, **PATIENT)
    await settle(world)
    assert await world.rows("SELECT deaths, failures, ending FROM runs") == [(0, 0, "answered")]
    assert world.telegram.texts(ADA) == ["re: hello"]


async def test_a_stored_step_takes_the_blame_off(world: World) -> None:
    went_on = asyncio.Event()

    async def steps(turn: Turn) -> str:
        if turn.attempt == 3:
            await turn.step("look", lambda: "found")
            went_on.set()
        if turn.attempt <= 3:
            await asyncio.Event().wait()
        return "done"

    await world.start(agent=steps, **PATIENT)
    assert await post(world.running[-1], Person(ADA).text("hello")) == [200]
    for _ in range(2):
        await until_running(world)
        await world.running[-1].die()
        await world.start(agent=steps, **PATIENT)
    assert await world.rows("SELECT deaths FROM runs") == [(2,)]
    await went_on.wait()
    assert await world.rows("SELECT deaths, failures FROM runs") == [(0, 0)]
    await world.running[-1].die()
    await world.start(agent=steps, **PATIENT)
    await settle(world)
    assert await world.rows("SELECT deaths, failures, ending FROM runs") == [(1, 0, "answered")]
