"""DBOS: a workflow under the update's id in a queue with a partition for each chat, of two steps.

`uvicorn ...:app` is the webhook and an executor in one, as its pages have it with FastAPI.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID
from dbos import error as dbos_error
from fastapi import FastAPI, Request, Response

from benchmarks.peers.bots.common import (
    AGENT_TRIES,
    SECRET,
    SECRET_HEADER,
    SEND_TRIES,
    Said,
    new_bot,
    sorry,
    think,
)

bot = new_bot()


@DBOS.step(retries_allowed=True, max_attempts=AGENT_TRIES)
async def consider(text: str) -> Sequence[str]:
    """The agent, repeated when it failed."""
    status = DBOS.step_status
    tried = status.current_attempt if status is not None else None
    return await think(text, (tried or 0) + 1)


@DBOS.step(retries_allowed=True, max_attempts=SEND_TRIES, backoff_rate=1.5)
async def send(chat: int, text: str) -> None:
    """One message."""
    await bot.send_message(chat, text)


@DBOS.workflow(name="answer")
async def answer(chat: int, text: str) -> None:
    """Behind a death it goes on after the last step that is recorded."""
    try:
        parts = await consider(text)
    except dbos_error.DBOSMaxStepRetriesExceeded:
        parts = [sorry(text)]
    for part in parts:
        await send(chat, part)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Launch, and leave when what is under way has ended."""
    DBOS(
        config={
            "name": "bot",
            "system_database_url": os.environ["DATABASE_URL"],
            "executor_id": os.environ["EXECUTOR"],
            "log_level": "WARNING",
        }
    )
    DBOS.launch()
    await DBOS.register_queue_async(
        "chats", worker_concurrency=50, partition_concurrency=1, polling_interval_sec=0.1
    )
    yield
    await asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=10)


app = FastAPI(lifespan=lifespan)


@app.post("/telegram/webhook")
async def webhook(request: Request) -> Response:
    """200 when the workflow stands in the queue."""
    if request.headers.get(SECRET_HEADER) != SECRET:
        return Response(status_code=401)
    said = Said.read(await request.json())
    chat = SetEnqueueOptions(queue_partition_key=f"chat-{said.chat}")
    with SetWorkflowID(f"update-{said.update}"), chat:
        await DBOS.enqueue_workflow_async("chats", answer, said.chat, said.text)
    return Response()
