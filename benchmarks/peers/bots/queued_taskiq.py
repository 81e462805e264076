"""taskiq: a stream of Redis with acknowledgements, retries by its middleware.

`uvicorn ...:app` is the webhook, `taskiq worker ...:broker` the worker.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from taskiq import Context, SmartRetryMiddleware, TaskiqDepends, TaskiqEvents, TaskiqState
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

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
from benchmarks.proof.errands import Failed

REDIS = os.environ.get("REDIS_URL", "redis://localhost")
broker = (
    RedisStreamBroker(
        REDIS,
        consumer_id="0",
        idle_timeout=30_000,
        unacknowledged_lock_timeout=5,
    )
    .with_result_backend(RedisAsyncResultBackend(REDIS, result_ex_time=3600))
    .with_middlewares(SmartRetryMiddleware(default_retry_count=SEND_TRIES, use_jitter=True))
)


@broker.task(task_name="answer", retry_on_error=True)
async def answer(chat: int, text: str, context: Annotated[Context, TaskiqDepends()]) -> None:
    """The task."""
    attempt = int(context.message.labels.get("_retries", 0)) + 1
    bot = context.state.bot
    try:
        parts = await think(text, attempt)
    except Failed:
        if attempt < AGENT_TRIES:
            raise
        parts = [sorry(text)]
    for part in parts:
        await bot.send_message(chat, part)


@broker.on_event(TaskiqEvents.WORKER_STARTUP)
async def startup(state: TaskiqState) -> None:
    """One bot for all tasks. The worker dies with its manager, as under a service manager, which
    kills them together."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    state.bot = new_bot()


async def webhook(request: Request) -> Response:
    """200 when the task stands in the stream."""
    if request.headers.get(SECRET_HEADER) != SECRET:
        return Response(status_code=401)
    said = Said.read(await request.json())
    task = answer.kicker().with_task_id(f"update-{said.update}")
    await task.kiq(said.chat, said.text)
    return Response()


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    """The connection to the stream."""
    await broker.startup()
    yield
    await broker.shutdown()


app = Starlette(routes=[Route("/telegram/webhook", webhook, methods=["POST"])], lifespan=lifespan)
