"""Hints through a real Redis: quick while it is there, never needed when it is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from bot.clock import SystemClock
from bot.domain.ports import Clock
from storage.notify import READY, Wakeups, part_topic, stop_topic
from tests.clocks import ShiftedClock
from tests.kit.line import line_to
from tests.limits import PATIENCE
from tests.servers import Valkey


@asynccontextmanager
async def process(url: str | None, clock: Clock | None = None) -> AsyncIterator[Wakeups]:
    """One process's wake-ups, relaying."""
    wakeups = Wakeups(clock or SystemClock(), url)
    relaying = asyncio.create_task(wakeups.relay())
    try:
        yield wakeups
    finally:
        relaying.cancel()
        await asyncio.wait([relaying])


async def reached(wakeups: Wakeups, *, connected: bool = True) -> None:
    """Until this process has Redis, or has noticed that it has not."""
    async with asyncio.timeout(PATIENCE):
        while wakeups.connected is not connected:
            await wakeups.wait(READY, 0.05)


async def carried(teller: Wakeups, hearer: Wakeups, topic: str) -> None:
    """Tell the topic until it is heard elsewhere."""
    async with asyncio.timeout(PATIENCE), hearer.expecting(topic) as heard:
        while not heard.is_set():
            teller.tell(topic)
            await hearer.wait(topic, 0.1)


@pytest.fixture
async def pair(valkey_url: str) -> AsyncIterator[tuple[Wakeups, Wakeups]]:
    """Two processes that hear each other."""
    async with AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(process(valkey_url)) for _ in range(2)]
        await reached(one)
        await reached(two)
        yield one, two


async def test_a_hint_reaches_who_waits_elsewhere(pair: tuple[Wakeups, Wakeups]) -> None:
    one, two = pair
    async with two.expecting(stop_topic(7)) as stopped:
        one.tell(stop_topic(7))
        async with asyncio.timeout(PATIENCE):
            await stopped.wait()


async def test_hints_that_are_told_before_one_could_leave_are_one(
    pair: tuple[Wakeups, Wakeups],
) -> None:
    one, two = pair
    heard: list[str] = []
    two.listen(heard.append)
    async with two.expecting(stop_topic(7)) as stopped:
        for _ in range(100):
            one.tell(READY)
        one.tell(stop_topic(7))
        async with asyncio.timeout(PATIENCE):
            await stopped.wait()
    assert heard == [READY, stop_topic(7)]


async def test_a_hint_wakes_nobody_who_waits_for_something_else(
    pair: tuple[Wakeups, Wakeups],
) -> None:
    one, two = pair
    async with two.expecting(part_topic(1)) as other, two.expecting(part_topic(2)) as mine:
        one.tell(part_topic(2))
        async with asyncio.timeout(PATIENCE):
            await mine.wait()
        assert not other.is_set()


async def test_a_process_hears_its_own_hint_once(pair: tuple[Wakeups, Wakeups]) -> None:
    one, two = pair
    heard: list[str] = []
    one.listen(heard.append)
    one.tell(stop_topic(7))
    await carried(two, one, stop_topic(8))
    assert heard.count(stop_topic(7)) == 1


async def test_a_connection_that_has_fallen_silent_is_left_for_another(
    valkey: Valkey, pair: tuple[Wakeups, Wakeups]
) -> None:
    one, _ = pair
    clock = ShiftedClock()
    async with (
        line_to(str(valkey.socket)) as line,
        process(f"redis://127.0.0.1:{line.port}/0", clock) as held,
    ):
        await reached(held)
        line.hold()
        async with asyncio.timeout(PATIENCE):
            while held.connected:
                clock.advance(1)
                await held.wait(READY, 0.05)
        line.release()
        await reached(held)
        await carried(one, held, stop_topic(7))


async def test_the_last_hint_of_a_process_that_leaves_arrives(
    valkey_url: str, pair: tuple[Wakeups, Wakeups]
) -> None:
    _, stays = pair
    async with stays.expecting(stop_topic(9)) as heard:
        async with process(valkey_url) as leaves:
            await reached(leaves)
            leaves.tell(stop_topic(9))
            await leaves.flush(PATIENCE)
        async with asyncio.timeout(PATIENCE):
            await heard.wait()


async def test_a_flush_without_redis_holds_nobody_up() -> None:
    wakeups = Wakeups(SystemClock(), "redis://127.0.0.1:1/0")
    wakeups.tell(READY)
    async with asyncio.timeout(PATIENCE):
        await wakeups.flush(2 * PATIENCE)


async def test_hints_within_a_process_need_no_redis() -> None:
    wakeups = Wakeups(SystemClock())
    await wakeups.relay()
    async with wakeups.expecting(READY) as told:
        wakeups.tell(READY)
        assert told.is_set()
    assert not await wakeups.wait(READY, 0.01)


async def test_hints_go_on_after_redis_was_emptied(
    valkey: Valkey, pair: tuple[Wakeups, Wakeups]
) -> None:
    valkey.flush()
    await carried(*pair, stop_topic(1))


async def test_hints_go_on_after_redis_was_restarted_and_who_waits_looks_meanwhile(
    valkey: Valkey, pair: tuple[Wakeups, Wakeups]
) -> None:
    one, two = pair
    async with two.expecting(READY) as looked:
        valkey.stop()
        async with asyncio.timeout(PATIENCE):
            await looked.wait()
    await reached(two, connected=False)
    one.tell(stop_topic(2))
    valkey.start()
    await carried(one, two, stop_topic(3))


async def test_a_redis_that_was_not_there_at_the_start_is_used_when_it_comes(
    valkey: Valkey, valkey_url: str
) -> None:
    valkey.stop()
    async with process(valkey_url) as one, process(valkey_url) as two:
        async with one.expecting(READY) as told:
            one.tell(READY)
            assert told.is_set()
        valkey.start()
        await carried(one, two, stop_topic(4))


async def test_hints_that_nobody_carries_do_not_pile_up_or_raise() -> None:
    wakeups = Wakeups(SystemClock(), "redis://127.0.0.1:1/0")
    for _ in range(20_000):
        wakeups.tell(READY)
