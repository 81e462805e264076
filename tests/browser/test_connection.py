"""The stream survives whatever a deploy, a proxy or a network makes of it."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import expect

from tests.browser.proxy import How, answer
from tests.browser.site import Site, Tab
from tests.fakes.faults import held_after_storing
from tests.limits import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

STREAM = "GET events"


async def hurried(tab: Tab, seconds: int) -> None:
    """Let time pass for the page."""
    await tab.page.clock.run_for(seconds * 1000)


@pytest.mark.long
async def test_b162_every_status_that_a_deploy_can_bring(site: Site) -> None:
    await site.serve()
    slow = site.ground.agent.fail("turn", held_after_storing())
    device = await site.device()
    await device.clock.install()
    tab = await site.tab(device)
    await tab.write("hello")
    await tab.becomes("hello", "Working on it")
    site.proxy.will(
        STREAM,
        answer(503, "no", Retry_After="2"),
        answer(502, "<h1>Bad gateway</h1>", "text/html"),
        answer(429, "slower"),
        answer(200, "<h1>Sign in to the network</h1>", "text/html"),
        How.RESET,
        How.CUT,
        answer(204),
        How.SILENT,
    )
    before = len(site.proxy.lines(STREAM))
    began = await now(tab)
    site.proxy.cut()
    await until(lambda: len(site.proxy.lines(STREAM)) > before)
    slow.release()
    refused = await now(tab)
    moments = {before + 1: refused}
    while len(site.proxy.lines(STREAM)) < before + 9:
        await hurried(tab, 1)
        moments.setdefault(len(site.proxy.lines(STREAM)), await now(tab))
        if await now(tab) - began > 4000 and not moments.get(0):
            await tab.says("Reconnecting…")
            moments[0] = 1
    await tab.becomes("hello", "Answered")
    await tab.shows("hello", "re: hello")
    await tab.says("")
    assert moments[before + 2] - moments[before + 1] >= 1900, "Retry-After is obeyed"
    assert (await now(tab) - began) / 1000 * 12 / 60 >= 8, "at most 12 tries a minute"
    await expect(tab.page.locator(".panel")).not_to_contain_text("gateway")


@pytest.mark.long
async def test_where_no_stream_comes_through_the_answer_is_read_from_the_history(
    site: Site,
) -> None:
    await site.serve()
    site.proxy.will(STREAM, *[How.SILENT] * 100)
    device = await site.device()
    await device.clock.install()
    tab = await site.tab(device)
    await tab.write("hello")
    while not await tab.bubbles.filter(has_text="re: hello").count():
        await hurried(tab, 5)
        assert len(site.proxy.lines(STREAM)) < 20
    await tab.shows("hello", "re: hello")
    await tab.becomes("hello", "Answered")
    await tab.says("Reconnecting…")


@pytest.mark.long
async def test_a_phone_that_slept_opens_its_stream_anew(site: Site) -> None:
    await site.serve()
    device = await site.device()
    await device.clock.install()
    tab = await site.tab(device)
    await tab.write("hello")
    await tab.becomes("hello", "Answered")
    streams = len(site.proxy.lines(STREAM))
    await device.clock.fast_forward(15_000)
    await tab.page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")
    await hurried(tab, 2)
    await until(lambda: len(site.proxy.lines(STREAM)) > streams)
    await tab.says("")


async def now(tab: Tab) -> float:
    """The page's clock, in ms."""
    moment: float = await tab.page.evaluate("() => Date.now()")
    return moment


async def test_b162_a_refused_token_asks_the_page_once_and_then_the_person(site: Site) -> None:
    await site.serve()
    site.proxy.scripts = """<script>window.asked = 0;
      window.answerback = { identity: () => { window.asked += 1; return "stale"; } };</script>"""
    refusal = answer(401, '{"error": "no"}', "application/json")
    site.proxy.will("POST session", *[refusal] * 4)
    tab = await site.tab()
    await tab.says("Please sign in to go on with this chat.")
    asked = await tab.page.evaluate("() => window.asked")
    assert asked <= 2
    count = len(site.proxy.asked)
    await tab.page.evaluate("() => dispatchEvent(new Event('online'))")
    await asyncio.gather(tab.says("Please sign in to go on with this chat."))
    assert len(site.proxy.asked) == count


async def test_a_guest_whose_token_is_refused_can_begin_anew(site: Site) -> None:
    await site.serve()
    tab = await site.tab()
    await tab.write("one")
    await tab.becomes("one", "Answered")
    refusal = answer(401, '{"error": "no"}', "application/json")
    site.proxy.will(STREAM, refusal)
    site.proxy.cut()
    await tab.bar.get_by_role("button", name="New chat").click()
    await tab.shows()
    await tab.write("two")
    await tab.becomes("two", "Answered")
    await tab.shows("two", "re: two")
