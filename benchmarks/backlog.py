"""A backlog: the share of the platform's allowed rate at which it drains, and in which order."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from benchmarks.job import Job
from benchmarks.lines import close_lines, open_lines, telegram, whatsapp
from benchmarks.report import Figures, progress
from benchmarks.scale import Scale
from benchmarks.stage import Servers, Stage, open_stage
from tests.fakes.updates import Person

_EACH = 6
"""Messages of a chat."""
_LONGEST = 900.0
_TAKERS = 32
PLATFORMS = {"telegram": 30.0, "whatsapp": 80.0}
"""Messages that each allows an account a second."""


async def backlog(servers: Servers, scale: Scale) -> Figures:
    """Every platform, with one process and with four, with Redis and without; `of_allowed` is the
    least of them."""
    found: Figures = {}
    for platform, processes, redis in scale.backlogs:
        name = f"{platform}, {processes} process{'es' * (processes > 1)}"
        name += ", Redis" if redis else ""
        url = servers.valkey.url() if redis else ""
        found[name] = await _drained(servers, platform, processes, url, scale.waiting)
        progress(f"backlog, {name}: {found[name]}")
    return found | {"of_allowed": min(figures["of_allowed"] for figures in found.values())}


async def _drained(
    servers: Servers, platform: str, processes: int, redis: str, waiting: int
) -> Figures:
    settings = {"REDIS_URL": redis, "BURST": "each", "CHAT_MESSAGES_PER_MINUTE": "1000"}
    async with open_stage(servers.postgres, telegram="benchmarks.fakes") as stage:
        web = await stage.start("web", **settings)
        await _take_in(web.url, platform, waiting)
        await asyncio.gather(*(stage.start("worker", **settings) for _ in range(processes)))
        async with asyncio.timeout(_LONGEST):
            while await asyncio.to_thread(_left, stage):
                await asyncio.sleep(1.0)
        [(claims,)] = stage.rows("SELECT max(attempts) FROM runs")
        return _figures(platform, waiting, claims, await _sends(stage, platform))


async def _take_in(url: str, platform: str, waiting: int) -> None:
    """Deliver so many messages, each chat's in order, and each until it is acknowledged."""
    job = Job(messages=waiting, chats=max(1, waiting // _EACH))
    people = [Person(870_000_000 + n) for n in range(job.chats)]
    lines = await open_lines([url], _TAKERS)

    async def lane(number_of_lane: int) -> None:
        for chat, number in job.lane(number_of_lane, _TAKERS):
            text = f"{chat} {number}"
            request = (
                telegram(people[chat], text)
                if platform == "telegram"
                else whatsapp(chat, number, text)
            )
            while (await lines[number_of_lane].post(request))[0] != 200:
                await asyncio.sleep(0.2)

    await asyncio.gather(*(lane(n) for n in range(_TAKERS)))
    close_lines(lines)


def _left(stage: Stage) -> bool:
    return bool(stage.rows("SELECT 1 FROM runs WHERE state <> 'ended' LIMIT 1"))


async def _sends(stage: Stage, platform: str) -> list[dict[str, Any]]:
    """Every call that would show an answer, in order."""
    if platform == "telegram":
        return await stage.calls(stage.telegram_url, "sendMessage")
    return await stage.calls(stage.twilio_url, "create")


def _figures(platform: str, waiting: int, claims: int, sends: Sequence[dict[str, Any]]) -> Figures:
    stored = [send for send in sends if send["stored"]]
    shown: dict[str, list[int]] = defaultdict(list)
    notices = 0
    for send in stored:
        last_word = (send["params"].get("text") or send["params"].get("Body")).split()[-1]
        if last_word.isdecimal():
            shown[send["chat"]].append(int(last_word))
        else:
            notices += 1
    seconds = stored[-1]["at"] - stored[0]["at"]
    rate = (len(stored) - 1) / seconds
    return {
        "of_allowed": rate / PLATFORMS[platform],
        "rate": rate,
        "most_claims": claims,
        "answered": len({number for numbers in shown.values() for number in numbers}),
        "waiting": waiting,
        "notices": notices,
        "doubled": sum(len(numbers) - len(set(numbers)) for numbers in shown.values()),
        "refused": len(sends) - len(stored),
        "out_of_order": sum(numbers != sorted(numbers) for numbers in shown.values()),
    }
