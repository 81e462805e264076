"""pgqueuer: jobs in PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from pgqueuer import AsyncpgPoolDriver, Job, PgQueuer, Queries

from benchmarks.peers.program import Answer, HandIn, Place


@asynccontextmanager
async def producing(place: Place) -> AsyncIterator[HandIn]:
    """Queries that enqueue."""
    async with asyncpg.create_pool(place.database, min_size=8, max_size=8) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))

        async def hand_in(_chat: int, number: int, text: str) -> None:
            await queries.enqueue("answer", text.encode(), dedupe_key=f"m{number}")

        yield hand_in


@asynccontextmanager
async def working(place: Place, concurrency: int, answer: Answer) -> AsyncIterator[None]:
    """A queue manager, which makes the tables first."""
    async with asyncpg.create_pool(place.database, min_size=8, max_size=8) as pool:
        driver = AsyncpgPoolDriver(pool)
        await Queries(driver).install()
        queue = PgQueuer(driver)

        async def job(found: Job) -> None:
            await answer((found.payload or b"").decode())

        queue.entrypoint("answer")(job)
        running = asyncio.create_task(
            queue.run(batch_size=concurrency // 2, max_concurrent_tasks=concurrency)
        )
        yield
        queue.shutdown.set()
        await asyncio.wait([running], timeout=10)
        running.cancel()
