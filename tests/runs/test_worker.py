"""The worker's claims: all that one of them brings, and the hints that more is due."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import text as sql

from bot.clock import SystemClock
from bot.wiring import Role
from storage import runs
from storage.notify import READY, Wakeups, stop_topic
from storage.statements.tx import Tx
from tests.fakes.telegram import faults
from tests.fakes.updates import Person
from tests.kit.agents import Held, repeats
from tests.kit.conversation import PATIENT, people, post
from tests.limits import PATIENCE
from tests.world import World, open_world

CHAT = 700100261


async def test_what_was_written_while_nobody_worked_is_claimed_together(world: World) -> None:
    web = await world.start(role=Role.WEB)
    everybody = people(12)
    for person in everybody:
        await post(web, person.text(f"hello from {person.number}"))
    await world.start(agent=repeats, role=Role.WORKER)
    await world.settled()
    assert [world.telegram.texts(p.number) for p in everybody] == [
        [f"hello from {p.number}"] for p in everybody
    ]


def spoil(tx: Tx, sender: int) -> None:
    """Make the messages of this person unreadable."""
    spoiled = sql("UPDATE inbound SET attachments = 'no list' WHERE sender_id = :sender")
    tx.execute(spoiled, {"sender": str(sender)})


async def test_a_message_that_breaks_its_reading_holds_up_nobody_else(world: World) -> None:
    web = await world.start(role=Role.WEB)
    broken, *others = people(4)
    for person in (broken, *others):
        await post(web, person.text("hello"))
    await web.process.rt.db.write(spoil, broken.number)
    await world.start(agent=repeats, role=Role.WORKER)
    await world.telegram.wait_for(
        lambda: all(world.telegram.texts(person.number) == ["hello"] for person in others)
    )
    await world.until("SELECT 1 FROM runs WHERE failures > 0", lambda rows: len(rows) == 1)
    assert world.telegram.texts(broken.number) == []


@pytest.fixture
async def shared(sqlite_url: str) -> AsyncIterator[World]:
    async with open_world(sqlite_url) as world:
        yield world


@asynccontextmanager
async def elsewhere(url: str) -> AsyncIterator[asyncio.Queue[str]]:
    """The hints that reach another process while the body runs."""
    wakeups, topics = Wakeups(SystemClock(), url), asyncio.Queue[str]()
    wakeups.listen(topics.put_nowait)
    relay = asyncio.create_task(wakeups.relay())
    try:
        async with asyncio.timeout(PATIENCE):
            assert await topics.get() == READY  # It is connected.
            yield topics
    finally:
        relay.cancel()
        await asyncio.gather(relay, return_exceptions=True)


async def test_what_becomes_ready_where_there_is_room_is_told_to_nobody_else(
    shared: World, valkey_url: str
) -> None:
    agent = Held()
    running = await shared.start(agent=agent, redis_url=valkey_url, **PATIENT)
    async with elsewhere(valkey_url) as topics:
        ada = Person(CHAT)
        await post(running, ada.text("one"), ada.text("two"))
        agent.go.set()
        await shared.settled()
        assert shared.telegram.texts(CHAT) == ["one", "two"]
        running.process.rt.wakeups.tell(stop_topic(99))
        assert await topics.get() == stop_topic(99)


async def test_what_becomes_ready_where_there_is_no_room_is_told_to_others(
    shared: World, valkey_url: str
) -> None:
    agent = Held()
    running = await shared.start(agent=agent, redis_url=valkey_url, concurrency=1, **PATIENT)
    async with elsewhere(valkey_url) as topics:
        await post(running, Person(CHAT).text("one"))
        await agent.begun.wait()
        await post(running, Person(CHAT + 1).text("two"))
        assert await topics.get() == READY
        agent.go.set()
        await shared.settled()
        assert shared.telegram.texts(CHAT + 1) == ["two"]


async def test_an_agent_that_is_free_goes_to_whoever_waits_first(world: World) -> None:
    agent = Held()
    running = await world.start(agent=agent, concurrency=1, **PATIENT)
    ada, ben = Person(CHAT), Person(CHAT + 1)
    await post(running, ada.text("one"))
    await agent.begun.wait()
    await post(running, ada.text("two"), ben.text("ben"))
    agent.go.set()
    await world.settled()
    assert agent.texts == ["one", "ben", "two"]


async def test_an_answer_on_its_way_keeps_no_agent_from_the_next(world: World) -> None:
    running = await world.start(agent=repeats, concurrency=1, **PATIENT)
    world.telegram.fail("sendMessage", faults.hang_before_storing(), times=2)
    for person in people(2):
        await post(running, person.text("hello"))
    await world.until("SELECT 1 FROM outbox WHERE state = 'sending'", lambda rows: len(rows) == 2)


async def test_a_chat_keeps_its_place_only_for_a_while_when_others_wait_for_one(
    world: World,
) -> None:
    agent = Held()
    running = await world.start(agent=agent, concurrency=4, **PATIENT)
    await post(running, Person(CHAT).text("one"))
    await agent.begun.wait()
    run, worker = await running.process.rt.db.read(runs.find, 1), running.process.worker
    assert run is not None
    assert worker is not None

    def kept(*, others: bool) -> bool:
        worker.places.more_due = {run.account} if others else set()
        place = worker.places.keep(run)
        if place is not None:
            worker.places.let_go()
        return place is not None

    assert kept(others=True)
    world.advance(3)
    assert not kept(others=True)
    assert kept(others=False)
    agent.go.set()
    await world.settled()
