"""Places for streams: so many for a visitor, for an address of the network, and for a process."""

from __future__ import annotations

import contextlib

import httpx
import pytest

from channels.web import app
from tests.kit.web import API, Visitor
from tests.limits import until
from tests.world import World


async def opens(visitor: Visitor, **headers: str) -> bool:
    """Tell whether the visitor gets one more stream."""
    url, known = f"{visitor.url}{API}/events", visitor.headers
    async with visitor.http.stream("GET", url, headers=known | headers) as answer:
        return answer.status_code == 200


async def test_one_stream_too_many_of_a_visitor_or_an_address_comes_back_for_the_next_place(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(
        web=True, web_proxies="127.0.0.1", web_visitor_per_minute=3, web_address_per_minute=5
    )
    first, second = [await Visitor(running.url, http).begin() for _ in range(2)]
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(3):
            await stack.enter_async_context(first.following())
        refused = await first.get("/events")
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        assert "streams" in refused.json()["error"]
        for _ in range(2):
            await stack.enter_async_context(second.following())
        assert not await opens(second)  # Five come from this address.
        assert await opens(second, **{"X-Forwarded-For": "10.0.0.7"})
    await until(lambda: opens(first))


async def test_a_process_with_all_its_streams_sends_the_next_one_to_another(
    world: World, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "_STREAMS_AT_ONCE", 1)
    visitor = await Visitor((await world.start(web=True)).url, http).begin()
    async with visitor.following() as following:
        await following.until(lambda f: f.told)
        refused = await visitor.get("/events")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
