"""Every way in which a run can end, and what the person saw of it: never silence unasked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bot.domain.ending import Ending
from bot.domain.errors import GiveUp
from bot.domain.turn import Turn
from bot.operations.actions import Operator, apply
from bot.operations.runs import close
from bot.texts import Text, Words
from bot.wiring import Role
from tests.fakes.telegram.faults import blocked, hang_after_storing
from tests.fakes.updates import Person
from tests.kit.agents import Held, repeats
from tests.world import World

CHAT = 700100291
WORDS = Words.load()


def say(text: Text) -> str:
    return WORDS.say(text)


async def answered(world: World) -> list[str]:
    process = await world.start(agent=repeats)
    await process.post_update(Person(CHAT).text("hi"))
    return ["hi"]


async def uncertain(world: World) -> list[str]:
    world.telegram.fail("sendMessage", hang_after_storing())
    process = await world.start(agent=repeats)
    await process.post_update(Person(CHAT).text("hi"))
    return ["hi", say(Text.UNCERTAIN_ASK_BUTTON)]


async def undeliverable(world: World) -> list[str]:
    """Nobody can be told anything."""
    process = await world.start(agent=repeats)
    world.telegram.fail("sendMessage", blocked())
    await process.post_update(Person(CHAT).text("hi"))
    return []


async def apologised(world: World) -> list[str]:
    async def agent(turn: Turn) -> str:
        raise RuntimeError("out of order")

    process = await world.start(agent=agent, max_failures=1)
    await process.post_update(Person(CHAT).text("hi"))
    return [say(Text.APOLOGY)]


async def failed(world: World) -> list[str]:
    """Even the apology was refused."""
    world.telegram.fail("sendMessage", blocked())
    await apologised(world)
    return []


async def withdrawn(world: World) -> list[str]:
    agent = Held()
    process = await world.start(agent=agent)
    ada = Person(CHAT)
    await process.post_update(ada.text("hi"))
    await agent.begun.wait()
    await process.post_update(ada.command("/stop"))
    return [say(Text.STOPPED)]


async def cancelled(world: World) -> list[str]:
    """The operator answers for this silence."""
    agent = Held()
    process = await world.start(agent=agent)
    await process.post_update(Person(CHAT).text("hi"))
    await agent.begun.wait()
    rt = process.process.rt
    run = agent.turns[0].run_id
    await apply(rt, lambda tx: close(tx, rt, Operator("op"), run, Ending.CANCELLED))
    return []


async def expired(world: World) -> list[str]:
    web = await world.start(agent=repeats, role=Role.WEB)
    await web.post_update(Person(CHAT).text("hi"))
    await web.die()
    world.advance(90_000)
    await world.start(agent=repeats)
    return [say(Text.TOO_OLD)]


async def silent(world: World) -> list[str]:
    """The agent chose to."""

    async def agent(turn: Turn) -> None:
        return None

    process = await world.start(agent=agent)
    await process.post_update(Person(CHAT).text("hi"))
    return []


WAYS: dict[Ending, Callable[[World], Awaitable[list[str]]]] = {
    Ending.ANSWERED: answered,
    Ending.UNCERTAIN: uncertain,
    Ending.UNDELIVERABLE: undeliverable,
    Ending.APOLOGISED: apologised,
    Ending.FAILED: failed,
    Ending.WITHDRAWN: withdrawn,
    Ending.CANCELLED: cancelled,
    Ending.EXPIRED: expired,
    Ending.SILENT: silent,
}


@pytest.mark.parametrize("ending", Ending)
async def test_every_ending_is_said_or_owed_to_nobody(world: World, ending: Ending) -> None:
    seen = await WAYS[ending](world)
    await world.until(
        "SELECT ending FROM runs", lambda rows: [row[0] for row in rows] == [ending.value]
    )
    await world.settled()
    assert world.telegram.texts(CHAT) == seen


async def test_what_an_agent_says_when_it_gives_up_is_the_apology(world: World) -> None:
    async def agent(turn: Turn) -> str:
        raise GiveUp("Only a person can do that.")

    process = await world.start(agent=agent)
    await process.post_update(Person(CHAT).text("hi"))
    await world.settled()
    assert world.telegram.texts(CHAT) == ["Only a person can do that."]
    assert await world.rows("SELECT ending FROM runs") == [("apologised",)]


async def test_a_turn_past_its_deadline_says_so(world: World) -> None:
    async def agent(turn: Turn) -> str:
        await asyncio.Event().wait()
        return "never"

    process = await world.start(agent=agent, run_deadline=0.2)
    await process.post_update(Person(CHAT).text("hi"))
    await world.settled()
    assert world.telegram.texts(CHAT) == [say(Text.APOLOGY_DEADLINE)]
