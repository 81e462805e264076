"""Seconds until another process goes on: woken for new work, after a death, a hand-over."""

from __future__ import annotations

import asyncio
import random
import signal
import time

from benchmarks.report import milliseconds, show
from benchmarks.stage import Stage, open_stage
from tests.fakes.updates import Person
from tests.servers import Postgres, Valkey

_LONGEST = 60.0


async def wake_ups(postgres: Postgres, valkey: Valkey | None, messages: int) -> None:
    """From the acknowledgement by one process to the turn's begin in another."""
    redis = {"REDIS_URL": valkey.url()} if valkey else {}
    chance = random.Random(1)
    async with open_stage(postgres) as stage:
        web = await stage.start("web", **redis)
        await stage.start("worker", AGENT="benchmarks.agents:stamp", **redis)
        seconds = []
        for number in range(messages):
            person = Person(810_000_000 + number)
            await asyncio.sleep(chance.random() * 0.5)
            await stage.post_update(web.url, person.text("hello"))
            acknowledged = time.monotonic()
            seconds.append(await began(stage, person) - acknowledged)
    show(f"woken in another process, {'Redis' if valkey else 'no Redis'}", milliseconds(seconds))


async def began(stage: Stage, person: Person) -> float:
    """When the turn began whose stamp the person was sent."""
    async with asyncio.timeout(_LONGEST):
        while not (texts := await stage.texts(person.number)):
            await asyncio.sleep(0.05)
    return float(texts[0].split()[-1])


async def after(postgres: Postgres, how: signal.Signals, **settings: str) -> None:
    """From the end of a process in the middle of a turn to that turn's begin in another."""
    person = Person(820_000_000)
    common = {"AGENT": "benchmarks.agents:hang_first", "SHUTDOWN_GRACE": "3", **settings}
    async with open_stage(postgres) as stage:
        leaver = await stage.start(**common)
        await stage.start("worker", **common)
        await stage.post_update(leaver.url, person.text("hello"))
        async with asyncio.timeout(_LONGEST):
            while not stage.rows("SELECT 1 FROM runs WHERE state = 'running'"):
                await asyncio.sleep(0.05)
        await leaver.end(how)
        ended = time.monotonic()
        seconds = await began(stage, person) - ended
    name = "kill -9" if how is signal.SIGKILL else "a hand-over"
    lease = settings.get("LEASE_SECONDS", "15")
    show(f"taken over after {name}, lease {lease} s", f"{seconds:.2f} s after its end")
