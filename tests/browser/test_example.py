"""The example site does what it shows to guests and to who signs in; so does the page for a try."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE

import pytest
from playwright.async_api import Browser, expect

from tests.browser.site import IDENTITY_SECRET, Site, Tab
from tests.e2e.forking import ROOT
from tests.kit.web import WEB
from tests.ports import own_port
from tests.world import open_world

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_example_site_has_a_guest_and_a_signed_in_visitor(site: Site) -> None:
    """It is of another origin than the chat, as a site of somebody's own is."""
    port = own_port()
    url = f"http://127.0.0.1:{port}"
    await site.serve(WEB_ORIGINS=url)
    environment = {"CHAT": site.proxy.url, "WEB_IDENTITY_SECRET": IDENTITY_SECRET}
    command = [sys.executable, str(ROOT / "examples/site/site.py"), str(port)]
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=PIPE)
    try:
        assert process.stdout is not None
        await process.stdout.readline()
        page = await (await site.device()).new_page()
        await page.goto(url)
        tab = Tab(page)
        await tab.open()
        await tab.write("as a guest")
        await tab.becomes("as a guest", "Answered")
        await page.get_by_role("button", name="Sign in as Ada").click()
        await expect(page.locator("#who")).to_have_text("Hello, Ada.")
        await tab.write("as ada")
        await tab.shows("as a guest", "re: as a guest", "as ada", "re: as ada")
        await tab.reload()
        await tab.shows("as a guest", "re: as a guest", "as ada", "re: as ada")
        await page.get_by_role("button", name="Sign out").click()
        await tab.shows()
        await tab.reload()
        await tab.shows()
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.parametrize("language", ["en", "ar"])
async def test_on_the_page_for_a_try_the_open_chat_covers_no_word(
    sqlite_url: str, browser: Browser, language: str
) -> None:
    async with open_world(sqlite_url) as world:
        running = await world.start(web_demo=True, **WEB)
        page = await browser.new_page(viewport={"width": 900, "height": 700})
        await page.add_init_script(f"window.answerback = {{ lang: '{language}' }}")
        refused: list[str] = []
        page.on("console", lambda said: refused.append(said.text) if said.type == "error" else None)
        await page.goto(f"{running.url}/web/")
        await Tab(page).open()
        panel = await page.locator(".panel").bounding_box()
        assert panel is not None
        for text in await page.locator("h1, p, pre").all():
            box = await text.bounding_box()
            assert box is not None
            before, after = (box, panel) if language == "en" else (panel, box)
            assert before["x"] + before["width"] <= after["x"]
        assert refused == []
        await page.close()
