"""Closing a run by hand, and giving one up with an apology."""

from __future__ import annotations

import asyncio
from functools import partial

from bot.domain.ending import Ending
from bot.domain.turn import Turn
from bot.operations.actions import Operator, Result
from bot.wiring import Role
from tests.fakes import faults
from tests.fakes.updates import Person
from tests.kit.agents import Held, repeats
from tests.kit.operating import apologise, close, noted, runs_of
from tests.limits import PATIENCE
from tests.world import World

ADA = 700100201


class Looping:
    """An agent with a loop of five steps, each of which ends when the test says so."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.began = asyncio.Event()
        self.go = asyncio.Semaphore(0)

    async def __call__(self, turn: Turn) -> str:
        if "loop" not in turn.text:
            return f"you said: {turn.text}"
        for number in range(5):
            await turn.step(f"model-{number}", partial(self._model, number))
        return "done"

    async def _model(self, number: int) -> int:
        self.begun.append(number)
        self.began.set()
        await self.go.acquire()
        return number


async def test_b95_a_cancelled_run_calls_no_model_any_more_and_the_next_one_starts(
    world: World,
) -> None:
    agent = Looping()
    process = await world.start(agent=agent, burst="each")
    ada = Person(ADA)
    await process.post_update(ada.text("loop"))
    await agent.began.wait()
    agent.began.clear()
    agent.go.release()
    await agent.began.wait()
    await process.post_update(ada.text("next"))
    acted = await close(process, 1, Ending.CANCELLED)
    assert acted.result is Result.DONE
    for _ in range(5):
        agent.go.release()
    await world.settled()
    assert agent.begun == [0, 1]
    assert await runs_of(world) == [(1, "ended", "cancelled"), (2, "ended", "answered")]
    assert world.telegram.texts(ADA) == ["you said: next"]
    (who, what, why) = (await noted(world, 1))[0]
    assert (who, what, why) == ("ann@session", "ended cancelled", "a test")


async def test_b95_a_cancelled_run_that_waits_never_starts(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent, burst="each")
    ada = Person(ADA)
    await process.post_update(ada.text("first"))
    await agent.begun.wait()
    await process.post_update(ada.text("second"))
    assert (await close(process, 2, Ending.CANCELLED)).result is Result.DONE
    agent.go.set()
    await world.settled()
    assert agent.texts == ["first"]
    assert world.telegram.texts(ADA) == ["first"]
    assert await runs_of(world) == [(1, "ended", "answered"), (2, "ended", "cancelled")]


async def test_a_worker_that_hears_no_hint_still_notices_within_seconds(world: World) -> None:
    agent = Held()
    worker = await world.start(agent=agent)
    await worker.post_update(Person(ADA).text("hello"))
    await agent.begun.wait()
    elsewhere = await world.start(agent=repeats, role=Role.WEB)
    assert (await close(elsewhere, 1, Ending.CANCELLED)).result is Result.DONE
    async with asyncio.timeout(PATIENCE):
        while agent.busy:
            await world.rows("SELECT 1")
    assert world.telegram.texts(ADA) == []


async def test_closing_as_answered_needs_something_that_shows_it(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    await process.post_update(Person(ADA).text("hello"))
    await agent.begun.wait()
    refused = await close(process, 1, Ending.ANSWERED, Operator("ann@session"))
    assert refused.result is Result.REFUSED
    assert "--reason" in refused.said
    done = await close(process, 1, Ending.ANSWERED, Operator("ann@session", "I called her"))
    assert done.result is Result.DONE
    assert await world.rows("SELECT ending, detail FROM runs") == [
        ("answered", "answered by ann@session: I called her")
    ]


async def test_an_uncertain_run_may_be_closed_and_an_answered_one_may_not(world: World) -> None:
    process = await world.start(agent=repeats, uncertain_delivery="hold")
    world.telegram.fail("sendMessage", faults.drop_after_storing(), nth=1)
    ada = Person(ADA)
    await process.post_update(ada.text("one"))
    await world.settled()
    await process.post_update(ada.text("two"))
    await world.settled()
    assert (await close(process, 1, Ending.ANSWERED)).result is Result.DONE
    assert (await close(process, 2, Ending.CANCELLED)).result is Result.TOO_LATE
    assert [ending for _, _, ending in await runs_of(world)] == ["answered", "answered"]


async def test_an_apology_by_hand_ends_the_work_and_is_sent_once(world: World) -> None:
    agent = Held()
    process = await world.start(agent=agent)
    await process.post_update(Person(ADA).text("hello"))
    await agent.begun.wait()
    acts = await asyncio.gather(apologise(process, 1), apologise(process, 1))
    assert sorted(a.result for a in acts) == [Result.DONE, Result.TOO_LATE]
    await world.settled()
    agent.go.set()
    assert len(world.telegram.texts(ADA)) == 1
    assert "again" in world.telegram.texts(ADA)[0]
    assert await world.rows("SELECT ending, detail FROM runs") == [
        ("apologised", "given up by ann@session: a test")
    ]
    assert (await apologise(process, 1)).result is Result.TOO_LATE


async def test_an_apology_waits_until_a_worker_is_there(world: World) -> None:
    """It is for what had come by then: what comes meanwhile does not join it."""
    web, ada = await world.start(agent=repeats, role=Role.WEB), Person(ADA)
    await web.post_update(ada.text("hello"))
    assert (await apologise(web, 1)).result is Result.DONE
    await web.post_update(ada.text("and this?"))
    assert world.telegram.texts(ADA) == []
    await world.start(agent=repeats)
    await world.settled()
    assert await runs_of(world) == [(1, "ended", "apologised"), (2, "ended", "answered")]
    assert len(world.telegram.texts(ADA)) == 2
    assert world.telegram.texts(ADA)[1] == "and this?"
