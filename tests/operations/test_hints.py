"""An operator's act reaches running processes at once where Redis carries hints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.clock import SystemClock
from bot.domain.ending import Ending
from bot.operations import runs
from bot.operations.actions import Result, apply
from bot.wiring import Role, operator_session
from storage.notify import READY, Wakeups, chat_topic, stop_topic
from tests.fakes.updates import Person
from tests.kit.agents import repeats
from tests.kit.operating import ANN
from tests.limits import PATIENCE
from tests.world import World, open_world

ADA = 700100201


@pytest.fixture
async def world(sqlite_url: str) -> AsyncIterator[World]:
    async with open_world(sqlite_url) as world:
        yield world


@asynccontextmanager
async def heard(url: str) -> AsyncIterator[asyncio.Queue[str]]:
    """Every hint that another process publishes while the body runs."""
    wakeups = Wakeups(SystemClock(), url)
    topics: asyncio.Queue[str] = asyncio.Queue()
    wakeups.listen(topics.put_nowait)
    relay = asyncio.create_task(wakeups.relay())
    try:
        assert await asyncio.wait_for(topics.get(), PATIENCE) == READY
        yield topics
    finally:
        relay.cancel()
        await asyncio.gather(relay, return_exceptions=True)


async def test_a_cancelled_run_is_told_to_other_processes(world: World, valkey_url: str) -> None:
    web = await world.start(agent=repeats, role=Role.WEB)
    await web.post_update(Person(ADA).text("hello"))
    settings = world.settings(redis_url=valkey_url)
    async with heard(valkey_url) as topics:
        async with operator_session(settings, tells=True) as session:
            acted = await apply(
                session.rt, lambda tx: runs.close(tx, session.rt, ANN, 1, Ending.CANCELLED)
            )
        assert acted.result is Result.DONE
        told = {await asyncio.wait_for(topics.get(), PATIENCE) for _ in range(3)}
    assert told == {stop_topic(1), chat_topic(1), READY}


async def test_an_act_without_redis_waits_for_nobody(world: World) -> None:
    web = await world.start(agent=repeats, role=Role.WEB)
    await web.post_update(Person(ADA).text("hello"))
    settings = world.settings(redis_url="redis://127.0.0.1:1/0")
    async with asyncio.timeout(PATIENCE), operator_session(settings, tells=True) as session:
        acted = await apply(
            session.rt, lambda tx: runs.close(tx, session.rt, ANN, 1, Ending.CANCELLED)
        )
    assert acted.result is Result.DONE
