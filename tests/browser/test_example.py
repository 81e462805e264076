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


COVERED = """() => {
  const root = document.querySelector("answerback-chat").shadowRoot;
  const over = [...root.querySelectorAll(".panel, .launch")]
    .map((it) => it.getBoundingClientRect()).filter((box) => box.width);
  const whole = over.some((box) => box.left <= 0 && box.top <= 0
    && box.right >= innerWidth && box.bottom >= innerHeight);
  const meets = (a, b) => a.left < b.right && b.left < a.right
    && a.top < b.bottom && b.top < a.bottom;
  const lines = [...document.querySelectorAll("h1, p, pre")].flatMap((it) => {
    const range = document.createRange();
    range.selectNodeContents(it);
    const box = (n) => () => range.getClientRects()[n];
    return Array.from(range.getClientRects(), (_, n) => [it.localName, box(n)]);
  });
  const hidden = whole ? [] : lines.filter(([, box]) => {
    scrollBy(0, box().top - innerHeight / 2);
    return over.some((one) => meets(one, box()));
  }).map(([name]) => name);
  const pressed = [...root.querySelectorAll(".launch, .panel button, textarea")].filter((it) => {
    const { left, top, width, height } = it.getBoundingClientRect();
    if (!width || (whole && it.matches(".launch"))) return false;
    const met = root.elementFromPoint(left + width / 2, top + height / 2);
    return !it.contains(met);
  }).map((it) => it.className || it.localName);
  const wide = document.documentElement.scrollWidth > innerWidth ? ["a line too wide"] : [];
  return [whole, [...hidden, ...pressed, ...wide]];
}"""
WINDOWS = {
    **{(width, 700): True for width in (320, 480, 481, 600, 700)},
    **{(width, 700): False for width in (701, 767, 768, 900)},
    (320, 256): True,
    (900, 400): True,
    (701, 401): False,
}
"""Windows by width and height, and whether the open chat takes all of each."""


@pytest.mark.parametrize("language", ["en", "ar"])
async def test_on_the_page_for_a_try_nothing_that_is_read_or_pressed_is_covered_in_any_window(
    sqlite_url: str, browser: Browser, language: str
) -> None:
    async with open_world(sqlite_url) as world:
        running = await world.start(web_demo=True, **WEB)
        page = await browser.new_page()
        await page.add_init_script(f"window.answerback = {{ lang: '{language}' }}")
        refused: list[str] = []
        page.on("console", lambda said: refused.append(said.text) if said.type == "error" else None)
        await page.goto(f"{running.url}/web/")
        for opened in (False, True):
            if opened:
                await Tab(page).open()
            for (width, height), whole in WINDOWS.items():
                await page.set_viewport_size({"width": width, "height": height})
                found = await page.evaluate(COVERED)
                assert found == [opened and whole, []], (opened, width, height)
        assert refused == []
        await page.close()
