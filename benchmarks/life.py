"""Starts and ends of a process: their cost, and the time until another one goes on."""

from __future__ import annotations

import asyncio
import random
import signal
import time

from benchmarks.job import quantile
from benchmarks.meters import cpu_seconds
from benchmarks.report import Figures, progress
from benchmarks.scale import Scale
from benchmarks.stage import Servers, Stage, open_stage
from tests.fakes.updates import Person

_LONGEST = 60.0


async def start(servers: Servers, scale: Scale) -> Figures:
    """CPU and seconds of `answerback serve` until it is ready, on a database that is there."""
    async with open_stage(servers.postgres) as stage:
        await (await stage.start()).end(signal.SIGTERM)
        cpu, wall = [], []
        for _ in range(scale.starts):
            began = time.monotonic()
            worker = await stage.start()
            wall.append(time.monotonic() - began)
            cpu.append(cpu_seconds([worker.process.pid]))
            await worker.end(signal.SIGTERM)
    found = {"cpu_s": quantile(cpu, 0.5), "ready_s": quantile(wall, 0.5)}
    progress(f"start: {found['cpu_s']:.2f} s of CPU, ready after {found['ready_s']:.2f} s")
    return found


async def takeover(servers: Servers, scale: Scale) -> Figures:
    """Seconds from a message, or from the end of a process in the middle of a turn, until
    another process begins it."""
    if not scale.wakeups:
        return {}
    short = {"LEASE_SECONDS": "3", "HEARTBEAT_SECONDS": "1"}
    found = {
        "woken, Redis": await _woken(servers, servers.valkey.url(), scale.wakeups),
        "woken": await _woken(servers, "", scale.wakeups),
        "after a hand-over": await _after(servers, signal.SIGTERM),
        "after kill -9, lease of 3 s": await _after(servers, signal.SIGKILL, **short),
        "after kill -9, lease of 15 s": await _after(servers, signal.SIGKILL),
    }
    progress(", ".join(f"{name} {seconds:.3f} s" for name, seconds in found.items()))
    return found


async def _woken(servers: Servers, redis: str, messages: int) -> float:
    """Median from the acknowledgement by one process to the turn's begin in another."""
    chance = random.Random(1)
    async with open_stage(servers.postgres) as stage:
        web = await stage.start("web", REDIS_URL=redis)
        await stage.start("worker", AGENT="benchmarks.agents:stamp", REDIS_URL=redis)
        seconds = []
        for number in range(messages):
            person = Person(810_000_000 + number)
            await asyncio.sleep(chance.random() * 0.5)
            await stage.post_update(web.url, person.text("hello"))
            acknowledged = time.monotonic()
            seconds.append(await _began(stage, person) - acknowledged)
    return quantile(seconds, 0.5)


async def _began(stage: Stage, person: Person) -> float:
    """The time at which the turn began whose stamp the person was sent."""
    async with asyncio.timeout(_LONGEST):
        while not (texts := await stage.texts(person.number)):
            await asyncio.sleep(0.05)
    return float(texts[0].split()[-1])


async def _after(servers: Servers, how: signal.Signals, **settings: str) -> float:
    person = Person(820_000_000)
    common = {"AGENT": "benchmarks.agents:hang_first", "SHUTDOWN_GRACE": "3", **settings}
    async with open_stage(servers.postgres) as stage:
        leaver = await stage.start(**common)
        await stage.start("worker", **common)
        await stage.post_update(leaver.url, person.text("hello"))
        async with asyncio.timeout(_LONGEST):
            while not stage.rows("SELECT 1 FROM runs WHERE state = 'running'"):
                await asyncio.sleep(0.05)
        await leaver.end(how)
        ended = time.monotonic()
        return await _began(stage, person) - ended
