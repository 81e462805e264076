"""Latency of acknowledged webhooks while the agent takes 30 seconds for every turn."""

from __future__ import annotations

import asyncio
import time

from benchmarks.figures import milliseconds, show
from benchmarks.stage import open_stage
from tests.fakes.updates import Person
from tests.servers import Postgres

_AT_ONCE = 8


async def measure(name: str, postgres: Postgres | None, messages: int) -> None:
    """Post so many updates from as many chats, eight at a time."""
    async with open_stage(postgres) as stage:
        worker = await stage.start(AGENT="benchmarks.agents:slow")
        people = iter([Person(800_000_000 + n) for n in range(messages)])
        seconds: list[float] = []

        async def post() -> None:
            for person in people:
                update = person.text("hello")
                began = time.monotonic()
                status = await stage.post_update(worker.url, update)
                seconds.append(time.monotonic() - began)
                if status != 200:
                    raise RuntimeError(f"a webhook was answered with {status}")

        began = time.monotonic()
        await asyncio.gather(*(post() for _ in range(_AT_ONCE)))
        rate = messages / (time.monotonic() - began)
    show(f"webhook, agent busy 30 s, {name}", f"{milliseconds(seconds)}   {rate:.0f}/s")
