"""arq: the webhook enqueues a job under the update's id, a worker does it and repeats what failed.

`uvicorn ...:app` is the webhook, `arq ...WorkerSettings` the worker.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from arq import Retry, create_pool, func
from arq.connections import RedisSettings
from redis.asyncio.retry import Retry as Reconnect
from redis.backoff import ExponentialBackoff
from redis.exceptions import ConnectionError as RedisGone
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from telegram.error import TelegramError

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


def redis_settings() -> RedisSettings:
    """Connections that come again when Redis was restarted."""
    found = RedisSettings.from_dsn(os.environ.get("REDIS_URL", "redis://localhost"))
    found.conn_retries, found.retry_on_timeout = 30, True
    found.retry_on_error = [RedisGone]
    found.retry = Reconnect(ExponentialBackoff(cap=1.0, base=0.1), 20)
    return found


async def answer(context: dict[str, Any], chat: int, text: str) -> None:
    """The job."""
    attempt, bot = context["job_try"], context["bot"]
    try:
        for part in await think(text, attempt):
            await bot.send_message(chat, part)
    except Failed as failed:
        if attempt < AGENT_TRIES:
            raise Retry(defer=attempt) from failed
        await bot.send_message(chat, sorry(text))
    except TelegramError as failed:
        raise Retry(defer=attempt) from failed


async def startup(context: dict[str, Any]) -> None:
    """One bot for all jobs of the worker."""
    context["bot"] = new_bot()


class WorkerSettings:
    """A job that was under way in a dead worker is taken after its timeout and ten seconds."""

    functions = (func(answer, name="answer", max_tries=SEND_TRIES),)
    redis_settings = redis_settings()
    on_startup = startup
    max_jobs = 50
    job_timeout = 20
    job_completion_wait = 10


async def webhook(request: Request) -> Response:
    """200 when the job stands in the queue."""
    if request.headers.get(SECRET_HEADER) != SECRET:
        return Response(status_code=401)
    said = Said.read(await request.json())
    queue = request.app.state.queue
    await queue.enqueue_job("answer", said.chat, said.text, _job_id=f"update-{said.update}")
    return Response()


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """The connection to the queue."""
    app.state.queue = await create_pool(redis_settings())
    yield
    await app.state.queue.aclose()


app = Starlette(routes=[Route("/telegram/webhook", webhook, methods=["POST"])], lifespan=lifespan)
