"""arq: jobs in Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from arq.connections import RedisSettings, create_pool
from arq.worker import Worker, func

from benchmarks.peers.program import Answer, HandIn, Place


@asynccontextmanager
async def producing(place: Place) -> AsyncIterator[HandIn]:
    """A pool that enqueues."""
    pool = await create_pool(RedisSettings.from_dsn(place.redis))

    async def hand_in(_chat: int, number: int, text: str) -> None:
        await pool.enqueue_job("answer", text, _job_id=f"m{number}")

    yield hand_in
    await pool.aclose()


@asynccontextmanager
async def working(place: Place, concurrency: int, answer: Answer) -> AsyncIterator[None]:
    """A worker."""

    async def job(_context: dict[str, Any], text: str) -> str:
        await answer(text)
        return text

    worker = Worker(
        [func(job, name="answer")],
        redis_settings=RedisSettings.from_dsn(place.redis),
        max_jobs=concurrency,
        poll_delay=0.01,
        handle_signals=False,
        log_results=False,
    )
    running = asyncio.create_task(worker.main())
    yield
    running.cancel()
    await asyncio.wait([running])
