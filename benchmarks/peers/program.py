"""One process of a peer: a producer or a worker, in the environment where that peer is installed.

A peer is a module `with_PEER` here with `producing(place)`, which yields a function that hands
one message in, and `working(place, concurrency, answer)`, which calls `answer` for every message
while its body runs. Each is set up as its own pages advise for such a job, with waits so short
that none of them is what is measured.

`python -m benchmarks.peers.program PEER produce|work DATABASE_URL REDIS_URL JOB`
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from benchmarks.job import Answers, Job, finish, paced, ready, spread, text_of


@dataclass(frozen=True, slots=True)
class Place:
    """The servers."""

    database: str
    redis: str


_LAST_ENDS = 1.0
"""Seconds in which a peer records the ends of its last jobs."""
HandIn = Callable[[int, int, str], Awaitable[object]]
"""Chat, number, text."""
Answer = Callable[[str], Awaitable[None]]


async def produce(peer: Any, place: Place, job: Job) -> None:
    """Hand in the job's messages, each chat's in order."""
    taken: list[float] = []
    async with peer.producing(place) as hand_in:

        async def lane(number_of_lane: int) -> None:
            async for chat, number in paced(job, number_of_lane, job.at_once):
                asked = time.monotonic()
                await hand_in(chat, number, text_of(chat, number))
                taken.append(time.monotonic() - asked)

        await asyncio.to_thread(ready)
        began = time.monotonic()
        await asyncio.gather(*(lane(n) for n in range(job.at_once)))
        result = {"began": began, "taken": spread(taken)}
        await asyncio.to_thread(finish, result | Answers(job).result())


async def work(peer: Any, place: Place, job: Job) -> None:
    """Answer the job's messages."""
    answers, answered = Answers(job), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def answer(text: str) -> None:
        if job.agent:
            await asyncio.sleep(job.agent)
        if answers.show(text):
            loop.call_soon_threadsafe(answered.set)

    async with peer.working(place, job.concurrency, answer):
        await asyncio.to_thread(ready)
        await answered.wait()
        await asyncio.to_thread(finish, answers.result() | {"taken": spread([])})
        await asyncio.sleep(_LAST_ENDS)


def main() -> None:
    """Do one part of the job with one peer."""
    name, part, database, redis, job = sys.argv[1:]
    parts = {"produce": produce, "work": work}
    peer = import_module(f"benchmarks.peers.with_{name}")
    asyncio.run(parts[part](peer, Place(database, redis), Job.read(job)))


if __name__ == "__main__":
    main()
