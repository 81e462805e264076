"""The doorway: the seconds that a platform waits for the acknowledgement of its webhook."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from benchmarks.job import spread
from benchmarks.lines import Line, Request, close_lines, open_lines, telegram
from benchmarks.report import Figures, progress
from benchmarks.scale import Scale
from benchmarks.stage import Servers, open_stage
from tests.fakes.updates import Person

AT_ONCE = 200
_RATE = 50.0
_PEOPLE = 1000
Answered = tuple[int, float]


async def doorway(servers: Servers, scale: Scale) -> Figures:
    """200 deliveries at once on two processes, and 50 a second: while agents are busy and answer,
    and (`idle`) at processes that only listen."""
    busy = await _measure(servers, scale, "all")
    return busy | {"idle": await _measure(servers, scale, "web")}


async def _measure(servers: Servers, scale: Scale, role: str) -> Figures:
    settings = {"AGENT": "benchmarks.agents:busy", "REDIS_URL": servers.valkey.url()}
    requests = _requests()
    async with open_stage(servers.postgres) as stage:
        urls = [(await stage.start(role, **settings)).url for _ in range(2)]
        lines = await open_lines(urls, AT_ONCE)
        try:
            await _paced(lines, requests, 20)
            paced = await _paced(lines, requests, scale.paced_webhooks)
            bursts = [
                answered
                for _ in range(scale.bursts)
                for answered in await _at_once(lines, requests)
            ]
        finally:
            close_lines(lines)
    found = _figures(bursts) | {f"paced_{k}": v for k, v in _figures(paced).items()}
    progress(f"doorway, role {role}: " + ", ".join(f"{k} {v:.0f}" for k, v in found.items()))
    return found


def _requests() -> Iterator[Request]:
    """Messages of many people, from each one after the other."""
    people = [Person(860_000_000 + n) for n in range(_PEOPLE)]
    while True:
        for person in people:
            yield telegram(person, "hello")


async def _at_once(lines: list[Line], requests: Iterator[Request]) -> list[Answered]:
    """One delivery on every line."""
    await asyncio.sleep(1.0)
    return await asyncio.gather(*(line.post(next(requests)) for line in lines))


async def _paced(lines: list[Line], requests: Iterator[Request], count: int) -> list[Answered]:
    """Deliveries at an even pace, whatever the others wait for."""
    began, posts = time.monotonic(), []
    for number in range(count):
        await asyncio.sleep(max(0.0, began + number / _RATE - time.monotonic()))
        line = lines[number % len(lines)]
        posts.append(asyncio.create_task(line.post(next(requests))))
    return await asyncio.gather(*posts)


def _figures(answered: list[Answered]) -> Figures:
    refused = sum(status != 200 for status, _ in answered)
    return {**spread([seconds for _, seconds in answered]), "refused": refused}
