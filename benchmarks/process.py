"""One process of Answerback that does its part of the job, with a callback for a terminal.

Messages come in by the door that every channel uses (`Intake.take`), answers leave by a channel
that shows them to us. No platform is in between, since platforms limit how fast one sends.

`python -m benchmarks.process produce|work|both DATABASE_URL REDIS_URL JOB`
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import uvloop

from benchmarks.job import Answers, Job, finish, paced, ready, spread, text_of
from benchmarks.meters import Counter
from bot.api import Agent, Turn
from bot.domain.decisions.terms import Burst
from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import Address, ChatKind, Inbound, InboundKind, Sender
from bot.intake.arrival import Arrival
from bot.runs.shutdown import shut_down
from bot.settings import Settings
from bot.wiring import Parts, Process, Role, running
from storage.views import runs as run_views

ROLES = {"produce": Role.WEB, "work": Role.WORKER, "both": Role.ALL}


def agent(seconds: float) -> Agent:
    """An agent that says what it was told, after so long."""

    async def answer(turn: Turn) -> str:
        if seconds:
            await asyncio.sleep(seconds)
        return turn.text

    return answer


def started(
    part: str,
    database: str,
    redis: str,
    job: Job,
    show: Callable[[str], None],
    thinks: Agent | None = None,
) -> AbstractAsyncContextManager[Process]:
    """A process for this part of the job, with production's settings but for the limits that
    protect a chat from its person. Answers come to `show`."""
    settings = Settings(
        _env_file=None,
        database_url=database,
        redis_url=redis,
        burst=Burst.EACH,
        concurrency=job.concurrency,
        chat_messages_per_minute=1_000_000,
        chat_waiting_max=1_000_000,
    )

    async def shown(text: str, _answers: str) -> None:
        show(text)

    return running(settings, ROLES[part], Parts(shown, thinks or agent(job.agent)))


def message(chat: int, number: int, text: str = "") -> Inbound:
    """A text that one of many people sent."""
    return Inbound(
        request_id=f"bench-{number}",
        address=Address(f"person-{chat}"),
        chat_kind=ChatKind.PRIVATE,
        kind=InboundKind.TEXT,
        text=text or text_of(chat, number),
        sender=Sender(id=f"person-{chat}", name="Ada"),
        provider_id=str(number),
    )


async def hand_in(process: Process, job: Job) -> dict[str, Any]:
    """Hand in the job's messages, `at_once` chats at a time; `refused` were not taken at first,
    as a 503 refuses them, and handed in again."""
    seconds, refused = list[float](), 0
    [account] = process.endpoints

    async def lane(number_of_lane: int) -> None:
        nonlocal refused
        async for chat, number in paced(job, number_of_lane, job.at_once):
            began = time.monotonic()
            said = message(chat, number)
            body = json.dumps({"from": f"person-{chat}", "id": number, "text": said.text})
            while True:
                try:
                    await process.intake.take(Arrival(account, body), (said,))
                    break
                except DatabaseUnavailable:
                    refused += 1
            seconds.append(time.monotonic() - began)

    began = time.monotonic()
    await asyncio.gather(*(lane(n) for n in range(job.at_once)))
    return {"began": began, "taken": spread(seconds), "refused": refused}


async def settled(process: Process) -> None:
    """Wait until no run is open."""
    [account] = process.endpoints
    while await process.rt.db.read(run_views.pending_in_account, account):
        await asyncio.sleep(0.02)


async def main(part: str, database: str, redis: str, job: Job) -> None:
    """Do one part of the job, or both."""
    counter, answers, answered = Counter.installed(), Answers(job), asyncio.Event()

    def show(text: str) -> None:
        if answers.show(text):
            answered.set()

    result: dict[str, Any] = {"began": 0.0, "taken": spread([])}
    async with started(part, database, redis, job, show) as process:
        await asyncio.to_thread(ready)
        counter.begin()
        if part != "work":
            result = await hand_in(process, job)
        if part != "produce":
            await answered.wait()
            await settled(process)
            result |= answers.result() | {"ended": time.monotonic()}
        await asyncio.to_thread(finish, result | counter.result())
        await shut_down(process.ctx, process.worker, 5.0)


if __name__ == "__main__":
    gc.freeze()  # As `answerback` has it.
    uvloop.run(main(sys.argv[1], sys.argv[2], sys.argv[3], Job.read(sys.argv[4])))
