"""A site with the widget on it, between a real browser and real processes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.proxy import Proxy, open_proxy
from tests.e2e.processes import NO_PLATFORM, Ground, Program, open_ground
from tests.limits import PATIENCE

IDENTITY_SECRET = "of-the-site-and-of-thirty-two-bytes"
_MS = PATIENCE * 1000
expect.set_options(timeout=_MS)


@dataclass
class Tab:
    """A page with the widget. Every look waits until it sees what it is to see."""

    page: Page

    @property
    def box(self) -> Locator:
        return self.page.locator("textarea")

    @property
    def bubbles(self) -> Locator:
        """The words of both sides."""
        return self.page.locator("li.item:not(:nth-child(2)) .bubble:visible")

    @property
    def bar(self) -> Locator:
        """The note on the connection."""
        return self.page.locator(".bar[data-key]")

    @property
    def launch(self) -> Locator:
        return self.page.locator("button.launch")

    def phase(self, text: str) -> Locator:
        """The outcome of a message of the person's."""
        mine = self.page.locator("li.mine").filter(has=self.page.get_by_text(text, exact=True))
        return mine.locator(".phase")

    async def open(self) -> None:
        """Open the chat."""
        await self.launch.click()

    async def write(self, *texts: str) -> None:
        """Send these, one after the other."""
        for text in texts:
            await self.box.fill(text)
            await self.box.press("Enter")
            await expect(self.phase(text)).to_have_count(1)

    async def shows(self, *texts: str) -> None:
        """Wait until these, and nothing else, were said, in this order."""
        await expect(self.bubbles).to_have_text(list(texts))

    async def becomes(self, text: str, phase: str) -> None:
        """Wait until this became of a message."""
        await expect(self.phase(text)).to_contain_text(phase)

    async def says(self, words: str) -> None:
        """Wait until the bar says so; nothing: until it is gone."""
        if words:
            await expect(self.bar).to_have_text(words)
        else:
            await expect(self.bar).to_be_hidden()

    async def reload(self) -> None:
        """Reload the page and open the chat."""
        await self.page.reload()
        await self.open()

    async def stored(self) -> dict[str, str]:
        """All that the page's storage holds."""
        stored: dict[str, str] = await self.page.evaluate("() => ({...localStorage})")
        return stored


@dataclass
class Site:
    """The page, what is behind it, and the browser that visits it."""

    ground: Ground
    proxy: Proxy
    browser: Browser
    contexts: list[BrowserContext] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Errors of scripts on the page."""

    async def serve(self, **changes: str) -> Program:
        """Start a process, and lead the page to it."""
        program = await self.ground.serve(**{**self.environment, **changes})
        self.proxy.behind = program.url
        return program

    @property
    def environment(self) -> dict[str, str]:
        return {
            **NO_PLATFORM,
            "WEB": "true",
            "WEB_ORIGINS": self.proxy.url,
            "WEB_IDENTITY_SECRET": IDENTITY_SECRET,
        }

    async def device(self, **options: Any) -> BrowserContext:
        """A browser of its own: nothing of another is in it."""
        # A dot that pulses is drawn 60 times a second, in software, for as long as a test waits.
        context = await self.browser.new_context(**{"reduced_motion": "reduce", **options})
        context.set_default_timeout(_MS)
        context.on("weberror", lambda error: self.faults.append(str(error.error)))
        self.contexts.append(context)
        return context

    async def tab(self, device: BrowserContext | None = None, *, opened: bool = True) -> Tab:
        """The page in a tab, with the chat opened."""
        page = await (device or await self.device()).new_page()
        await page.goto(self.proxy.url)
        tab = Tab(page)
        if opened:
            await tab.open()
        return tab


@asynccontextmanager
async def open_site(database_url: str, folder: Path, browser: Browser) -> AsyncIterator[Site]:
    """A site on this database, with no process behind it yet."""
    async with open_ground(database_url, folder) as ground, open_proxy() as proxy:
        site = Site(ground, proxy, browser)
        try:
            yield site
            assert site.faults == []
        finally:
            for context in site.contexts:
                await context.close()
