"""The operator's page: milliseconds of the server for each page, in front of a long past."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Mapping

import httpx

from benchmarks.flat import offered
from benchmarks.job import quantile
from benchmarks.meters import cpu_seconds
from benchmarks.past import Size, grow
from benchmarks.report import Figures, progress
from benchmarks.scale import Scale
from benchmarks.stage import Servers
from bot.wiring import Role
from bot.wiring.channels import given_settings
from bot.wiring.operator import operator_session
from bot.wiring.operator_page import operator_page
from storage.schema.migrate import upgrade

PASSWORD = "a-password-of-this-benchmark"
PAGES: Mapping[str, str] = {
    "now": "",
    "a run": "/runs/{run}",
    "all runs": "/search",
    "by request id": "/search?q=past-{past}",
    "by receipt": "/search?q=r{run}",
    "by address": "/search?q=person-3",
    "an ending that none has": "/search?ending=failed",
    "a state that few have": "/search?state=ready",
    "far back": "/search?before={far}",
    "the inbox": "/chats",
    "chats of one reason": "/chats?reason=apologised",
    "chats by their last message": "/chats?all=1",
    "a chat with a long past": "/chats/3",
    "far back in it": "/chats/3?before=1.0e12-{far}-{far}",
}
"""By what they show; the numbers are those of the past that `grow` inserts."""


async def operator(_servers: Servers, scale: Scale) -> Figures:
    """Each page, again and again, on both databases."""
    with offered() as urls:
        found = {kind: await _measure(url, scale) for kind, url in urls.items()}
    return {"size": str(scale.sizes[-1]), **found}


async def _measure(url: str, scale: Scale) -> Figures:
    size = scale.sizes[-1]
    await asyncio.to_thread(upgrade, url)
    await asyncio.to_thread(grow, url, Size(chats=0), size)
    settings = given_settings(database_url=url, operator_password=PASSWORD)
    async with operator_session(settings) as session:
        page = operator_page(settings, Role.ALL, session.rt)
        assert page is not None
        transport = httpx.ASGITransport(page, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as browser:
            await _sign_in(browser)
            last = await session.rt.db.read(lambda tx: tx.run("SELECT max(id) FROM runs"))
            run = int(last[0][0])
            numbers = {"run": run - 5, "past": size.ended // 2, "far": run // 2}
            found = {
                name: await _cost(browser, path.format(**numbers), scale.flat_times)
                for name, path in PAGES.items()
            }
    told = ", ".join(
        f"{name} {cost['p50_ms']:.0f} ({cost['cpu_ms']:.0f} of CPU)" for name, cost in found.items()
    )
    progress(f"{url.partition(':')[0]}, {size}: {told}")
    return found


async def _sign_in(browser: httpx.AsyncClient) -> None:
    form = await browser.get("/operator/sign-in")
    [token] = re.findall(r'name="form_token" value="([0-9a-f]+)"', form.text)
    fields = {"form_token": token, "name": "operator", "password": PASSWORD}
    origin = {"Origin": "http://127.0.0.1"}
    answer = await browser.post("/operator/sign-in", data=fields, headers=origin)
    assert answer.status_code == 303, answer.text


async def _cost(browser: httpx.AsyncClient, path: str, times: int) -> Figures:
    took, used = list[float](), cpu_seconds([os.getpid()])
    for _ in range(times):
        began = time.monotonic()
        answer = await browser.get(f"/operator{path}")
        took.append(time.monotonic() - began)
        assert answer.status_code == 200, answer.text
    used = cpu_seconds([os.getpid()]) - used
    costs = {"cpu_ms": 1000 * used / times}
    return costs | {"p50_ms": 1000 * quantile(took, 0.5), "p99_ms": 1000 * quantile(took, 0.99)}
