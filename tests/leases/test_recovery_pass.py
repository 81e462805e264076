"""The recovery pass: repeated, cut off, and not to be stopped by one run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from bot.domain.errors import DatabaseUnavailable
from bot.leases import recovery
from bot.wiring import Role
from storage.engine.database import Database, DatabaseSettings
from tests.fakes.updates import Person
from tests.kit.agents import Echo, Gated
from tests.kit.conversation import ADA, BOB, PATIENT, endings, people, post
from tests.kit.passing import settle
from tests.limits import until
from tests.servers import Postgres
from tests.servers.daemon import Stop
from tests.world import World, open_world


async def change(world: World, sql: str) -> None:
    """Put something into the rows that no move of ours would."""
    db = Database(DatabaseSettings(world.database_url, pool=1), world.clock)
    try:
        await db.write(lambda tx: tx.execute(text(sql)).rowcount)
    finally:
        db.close()


async def test_a_run_that_breaks_our_own_code_is_set_aside_and_stops_no_other(
    world: World,
) -> None:
    door = await world.start(agent=Echo(), role=Role.WEB, **PATIENT)
    bad, *good = people(6)
    assert await post(door, bad.text("bad")) == [200]
    for person in good:
        assert await post(door, person.text("good")) == [200]
    await door.stop()
    await change(world, "UPDATE inbound SET attachments = 'no JSON' WHERE text = 'bad'")
    agent = Echo()
    await world.start(agent=agent, **PATIENT)
    sql = "SELECT state, set_aside FROM runs WHERE set_aside IS NOT NULL"

    async def set_aside() -> Sequence[Any]:
        world.advance(0.5)
        return await world.rows(sql)

    assert await until(set_aside) == [("ready", "it keeps breaking its turn")]
    answered = "SELECT count(*) FROM runs WHERE ending = 'answered'"
    await world.until(answered, lambda rows: rows[0][0] == 5)
    assert [world.telegram.texts(p.number) for p in good] == [["re: good"]] * 5
    assert agent.calls == {"good": 5}


async def test_a_stranded_chat_is_promoted(world: World) -> None:
    """A waiting run with nothing before it: what a crash between two moves could leave."""
    door = await world.start(agent=Echo(), role=Role.WEB, **PATIENT)
    assert await post(door, Person(ADA).text("hello"), Person(BOB).text("good day")) == [200] * 2
    await change(world, "UPDATE runs SET state = 'waiting'")
    running = await world.start(agent=Echo(), **PATIENT)
    await recovery.repair(running.process.rt)
    await settle(world)
    assert await endings(world) == [("hello", "answered"), ("good day", "answered")]


async def test_a_reader_that_meets_a_dead_run_releases_it_and_does_nothing_else(
    world: World,
) -> None:
    agent = Gated()
    terms: dict[str, Any] = {"lease_seconds": 15.0, "heartbeat_seconds": 5.0, "burst": "each"}
    dead = await world.start(agent=agent, **terms)
    update = Person(ADA).text("hello")
    assert await post(dead, update) == [200]
    await agent.begun.wait()
    await dead.die()
    world.advance(20.0)
    door = await world.start(agent=agent, role=Role.WEB, holder_name="door", **terms)
    door.stand_still()
    assert await post(door, update) == [200]
    assert await world.rows("SELECT state, holder, deaths FROM runs") == [("ready", None, 1)]
    assert world.telegram.texts(ADA) == []
    assert agent.calls == {"hello": 1}


async def test_two_passes_at_once_release_a_run_once(world: World) -> None:
    agent = Gated()
    terms: dict[str, Any] = {"lease_seconds": 15.0, "heartbeat_seconds": 5.0, "burst": "each"}
    dead = await world.start(agent=agent, **terms)
    for person in people(5):
        assert await post(dead, person.text("hello")) == [200]
    await world.until("SELECT count(*) FROM runs WHERE state = 'running'", lambda r: r[0][0] == 5)
    await dead.die()
    world.advance(20.0)
    doors = [
        await world.start(agent=agent, role=Role.WEB, holder_name=f"door-{n}", **terms)
        for n in range(2)
    ]
    await asyncio.gather(*(d.process.sweep() for d in doors for _ in range(3)))
    assert set(await world.rows("SELECT state, deaths FROM runs")) == {("ready", 1)}
    assert await world.rows("SELECT count(*) FROM events WHERE what = 'released'") == [(5,)]


@pytest.fixture
async def on_postgres(postgres_url: str) -> AsyncIterator[World]:
    async with open_world(postgres_url) as world:
        yield world


async def test_a_pass_survives_a_restart_of_the_database_in_its_middle(
    on_postgres: World, postgres: Postgres
) -> None:
    world = on_postgres
    agent = Gated()
    terms: dict[str, Any] = {"lease_seconds": 15.0, "heartbeat_seconds": 5.0, "burst": "each"}
    dead = await world.start(agent=agent, **terms)
    assert await post(dead, Person(ADA).text("hello")) == [200]
    await agent.begun.wait()
    await dead.die()
    heir = await world.start(agent=agent, role=Role.WEB, holder_name="heir", **terms)
    heir.stand_still()
    world.advance(12.0)
    await heir.process.lease.renew()
    world.advance(8.0)
    with suppress(psycopg.Error), psycopg.connect(world.database_url) as blocker:
        blocker.execute("SELECT 1 FROM holders ORDER BY id LIMIT 1 FOR UPDATE")
        sweeping = asyncio.create_task(recovery.sweep(heir.process.rt, heir.process.lease))
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        await world.until(waiting, lambda rows: rows[0][0] == 1)
        postgres.restart(Stop.KILL)
    [cut_off] = await asyncio.gather(sweeping, return_exceptions=True)
    assert isinstance(cut_off, DatabaseUnavailable | recovery.Swept)
    await recovery.sweep(heir.process.rt, heir.process.lease)
    assert await world.rows("SELECT state, deaths FROM runs") == [("ready", 1)]
    agent.go.set()
    await world.start(agent=agent, holder_name="worker", **PATIENT)
    await settle(world)
    assert world.telegram.texts(ADA) == ["re: hello"]
