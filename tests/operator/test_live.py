"""Live parts: news are sent, and a stream ends with its session and with its process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager

import pytest

from bot.operator import live
from bot.operator.live import Owner, Streams
from tests.clocks import ShiftedClock
from tests.fakes.updates import Person
from tests.kit.agents import Gated
from tests.kit.operator import SETTINGS, TWO, OperatorBrowser, form_token
from tests.operator.conftest import Browsers
from tests.world import World

pytestmark = pytest.mark.alternating(0)
BOB = 700100222


@asynccontextmanager
async def following(ada: OperatorBrowser, path: str) -> AsyncIterator[AsyncIterator[str]]:
    """The blocks of a stream."""
    async with ada.http.stream(
        "GET", f"{ada.base}/operator{path}", headers={"Accept": "text/event-stream"}
    ) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")

        async def blocks() -> AsyncIterator[str]:
            block: list[str] = []
            async for line in answer.aiter_lines():
                if line:
                    block.append(line)
                elif block:
                    yield "\n".join(block)
                    block = []

        yield blocks()


async def pieces(blocks: AsyncIterator[str], name: str, words: str) -> str:
    """The first such piece that has these words."""
    async for block in blocks:
        kind, _, data = block.partition("\ndata: ")
        if kind == "event: pieces" and words in json.loads(data).get(name, ""):
            html: str = json.loads(data)[name]
            return html
    raise AssertionError(f"the stream ended without {words}")


async def test_a_run_is_drawn_anew_as_it_goes_on(world: World, browsers: Browsers) -> None:
    agent = Gated()
    running = await world.start(agent=agent, **SETTINGS)
    ada = browsers(running)
    await ada.sign_in()
    await running.post_update(Person(BOB).text("nobody asked to see this"))
    await agent.begun.wait()
    async with following(ada, "/live/runs/1") as blocks:
        first = await pieces(blocks, "drawn", "has not ended")
        agent.go.set()
        last = await pieces(blocks, "drawn", "ended as answered")
    assert "nobody asked" not in first + last


async def test_a_stream_ends_when_its_operator_signs_out(world: World, browsers: Browsers) -> None:
    running = await world.start(**SETTINGS)
    ada = browsers(running)
    await ada.sign_in()
    token = form_token(await ada.get(""))
    async with following(ada, "/live/now") as blocks:
        await pieces(blocks, "stuck", "Nothing is stuck")
        await ada.send("/sign-out", {"form_token": token})
        told = [block async for block in blocks]
    assert told[-1].startswith("event: over")
    ada.http.cookies.clear()
    refused = await ada.get("/live/now", Accept="text/event-stream")
    assert refused.status_code == 401


async def test_a_process_that_leaves_ends_its_streams_first(
    world: World, browsers: Browsers
) -> None:
    running = await world.start(**SETTINGS)
    ada, bob = browsers(running), browsers(running)
    for one in (ada, bob):
        await one.sign_in()
    async with following(ada, "/live/now") as blocks:
        await pieces(blocks, "stuck", "Nothing is stuck")
        running.process.send_followers_away()
        assert [block async for block in blocks] == []
        late = await bob.get("/live/now")
        assert (late.status_code, late.headers["retry-after"]) == (503, "2")


async def test_while_the_database_is_away_a_stream_says_so_and_goes_on(
    world: World, browsers: Browsers
) -> None:
    running = await world.start(**SETTINGS)
    ada = browsers(running)
    await ada.sign_in()
    async with following(ada, "/live/now") as blocks:
        await pieces(blocks, "stuck", "Nothing is stuck")
        running.away(away=True)
        assert any([block.startswith("event: away") async for block in first_of(blocks)])
        answer = await ada.get("")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        running.away(away=False)
        await running.post_update(Person(BOB).text("hello"))
        await pieces(blocks, "figures", "recorded")


async def first_of(blocks: AsyncIterator[str]) -> AsyncIterator[str]:
    """The next block alone."""
    async for block in blocks:
        yield block
        return


async def test_all_who_follow_the_same_share_a_look_and_each_sees_the_first_whole(
    world: World, browsers: Browsers
) -> None:
    running = await world.start(**TWO)
    ada, other, bob = browsers(running), browsers(running), browsers(running)
    for one, name in ((ada, "ada"), (other, "ada"), (bob, "bob")):
        await one.sign_in(name)
    async with (
        following(ada, "/live/now") as first,
        following(other, "/live/now") as second,
        following(bob, "/live/now") as third,
    ):
        for blocks in (first, second, third):
            await pieces(blocks, "stuck", "Nothing is stuck")
        page = running.process.operator_page
        assert page is not None
        assert len(page._streams._shared) == 2, "a button is shown to who may press it alone"


async def test_one_session_keeps_its_newest_pages_live_and_the_oldest_is_told(
    world: World, browsers: Browsers
) -> None:
    running = await world.start(**TWO)
    ada, bob = browsers(running), browsers(running)
    await ada.sign_in("ada")
    await bob.sign_in("bob")
    async with AsyncExitStack() as pages:
        of_bob = await pages.enter_async_context(following(bob, "/live/now"))
        first = await pages.enter_async_context(following(ada, "/live/now"))
        later = [
            await pages.enter_async_context(following(ada, "/live/now"))
            for _ in range(live.OF_SESSION)
        ]
        told = [block async for block in first]
        assert told[-1].startswith("event: displaced")
        for blocks in (of_bob, *later):
            await pieces(blocks, "stuck", "Nothing is stuck")


def test_no_address_has_all_streams_of_a_process_however_many_sessions_it_begins() -> None:
    streams = Streams(None, ShiftedClock())  # type: ignore[arg-type]  # none is asked here
    with ExitStack() as pages:
        other = pages.enter_context(streams.opened(Owner("other", "203.0.113.9")))
        opened = [
            pages.enter_context(streams.opened(Owner(str(number), "198.51.100.7")))
            for number in range(live.OF_ADDRESS + 1)
        ]
        assert [one.displaced for one in (other, *opened)] == [
            False,
            True,
            *([False] * live.OF_ADDRESS),
        ]
        # A session that moves to a full address takes its own oldest place and the address's.
        for _ in range(live.OF_SESSION):
            pages.enter_context(streams.opened(Owner("roams", "203.0.113.9")))
        pages.enter_context(streams.opened(Owner("roams", "198.51.100.7")))
        assert opened[1].displaced
