"""procrastinate: jobs in PostgreSQL; a lock for each chat keeps its order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued

from benchmarks.peers.program import Answer, HandIn, Place


def _app(place: Place, answer: Answer | None = None) -> App:
    app = App(connector=PsycopgConnector(conninfo=place.database, min_size=8, max_size=8))

    async def job(text: str) -> None:
        assert answer is not None
        await answer(text)

    app.task(job, name="answer")
    return app


@asynccontextmanager
async def producing(place: Place) -> AsyncIterator[HandIn]:
    """An app that defers."""
    async with _app(place).open_async() as app:

        async def hand_in(chat: int, number: int, text: str) -> None:
            job = app.configure_task("answer", lock=f"chat-{chat}", queueing_lock=f"m{number}")
            try:
                await job.defer_async(text=text)
            except AlreadyEnqueued:
                return

        yield hand_in


@asynccontextmanager
async def working(place: Place, concurrency: int, answer: Answer) -> AsyncIterator[None]:
    """A worker, which makes the tables first."""
    async with _app(place, answer).open_async() as app:
        await app.schema_manager.apply_schema_async()
        worker = app.run_worker_async(
            concurrency=concurrency, install_signal_handlers=False, fetch_job_polling_interval=0.1
        )
        running = asyncio.create_task(worker)
        yield
        running.cancel()
        await asyncio.wait([running])
