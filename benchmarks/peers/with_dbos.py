"""DBOS: workflows in PostgreSQL; a partition of the queue for each chat keeps its order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dbos import DBOS, DBOSClient

from benchmarks.peers.program import Answer, HandIn, Place


@asynccontextmanager
async def producing(place: Place) -> AsyncIterator[HandIn]:
    """A client that enqueues."""
    client = DBOSClient(system_database_url=place.database, application_name="bench")

    async def hand_in(chat: int, number: int, text: str) -> None:
        where = {"queue_name": "chats", "workflow_name": "answer"}
        who = {"workflow_id": f"m{number}", "queue_partition_key": f"chat-{chat}"}
        await client.enqueue_async({**where, **who}, text)

    yield hand_in
    client.destroy()


@asynccontextmanager
async def working(place: Place, concurrency: int, answer: Answer) -> AsyncIterator[None]:
    """An executor, which makes the tables first."""
    DBOS(config={"name": "bench", "system_database_url": place.database, "log_level": "WARNING"})

    async def job(text: str) -> str:
        await answer(text)
        return text

    DBOS.workflow(name="answer")(job)
    DBOS.launch()
    await DBOS.register_queue_async(
        "chats",
        worker_concurrency=concurrency,
        partition_concurrency=1,
        polling_interval_sec=0.05,
    )
    yield
    DBOS.destroy()
