"""taskiq: tasks in a stream of Redis, acknowledged once they are done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from taskiq.receiver import Receiver
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

from benchmarks.peers.program import Answer, HandIn, Place


def _broker(place: Place) -> RedisStreamBroker:
    results = RedisAsyncResultBackend(place.redis, result_ex_time=3600)
    broker = RedisStreamBroker(place.redis, xread_block=100, consumer_id="0")
    return broker.with_result_backend(results)


@asynccontextmanager
async def producing(place: Place) -> AsyncIterator[HandIn]:
    """A broker that kicks."""
    broker = _broker(place)

    async def answer(text: str) -> str:
        return text

    task = broker.register_task(answer, task_name="answer")
    await broker.startup()

    async def hand_in(_chat: int, number: int, text: str) -> None:
        await task.kicker().with_task_id(f"m{number}").kiq(text)

    yield hand_in
    await broker.shutdown()


@asynccontextmanager
async def working(place: Place, concurrency: int, answer: Answer) -> AsyncIterator[None]:
    """A receiver."""
    broker = _broker(place)

    async def task(text: str) -> str:
        await answer(text)
        return text

    broker.register_task(task, task_name="answer")
    broker.is_worker_process = True
    receiver = Receiver(broker, max_async_tasks=concurrency, max_prefetch=concurrency)
    finished = asyncio.Event()
    running = asyncio.create_task(receiver.listen(finished))
    yield
    finished.set()
    await asyncio.wait([running], timeout=5)
    running.cancel()
