"""The operator's page in a browser: by keyboard, on a telephone, while things change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from playwright.async_api import Browser, Page, expect

from bot.operator.live import OF_SESSION
from storage.schema import tables
from storage.statements.tx import Tx
from tests.cli.seeded import NOW
from tests.kit.operator import PASSWORD, Seeded, served
from tests.limits import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")
expect.set_options(timeout=PATIENCE * 1000)


@dataclass
class Screen:
    """A page, its address, what is behind it, and what a browser complained of."""

    page: Page
    base: str
    behind: Seeded
    complaints: list[str] = field(default_factory=list)

    async def sign_in(self, path: str = "") -> None:
        """Ask for a page, and get it by the password."""
        await self.page.goto(f"{self.base}{path}")
        await expect(self.page.get_by_label("Password")).to_be_focused()
        await self.page.keyboard.type(PASSWORD)
        await self.page.keyboard.press("Enter")
        await expect(self.page.get_by_role("button", name="Sign out")).to_be_visible()


@asynccontextmanager
async def screen(sqlite_url: str, browser: Browser, **options: Any) -> AsyncIterator[Screen]:
    async with served(sqlite_url) as (base, behind):
        context = await browser.new_context(**options)
        context.set_default_timeout(PATIENCE * 1000)
        page = await context.new_page()
        seen = Screen(page, base, behind)
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.on(
            "console",
            lambda said: seen.complaints.append(said.text) if said.type == "error" else None,
        )
        try:
            yield seen
            assert seen.complaints == []
        finally:
            await context.close()


async def test_somebody_with_a_keyboard_finds_a_run_and_closes_it(
    sqlite_url: str, browser: Browser
) -> None:
    async with screen(sqlite_url, browser) as seen:
        page, keys = seen.page, seen.page.keyboard
        await seen.sign_in()
        await keys.press("/")
        await expect(page.get_by_role("searchbox")).to_be_visible()
        await keys.press("/")
        await keys.type("tg-700100201-42")
        await keys.press("Enter")
        await expect(page.locator(".rows a")).to_have_count(1)
        await keys.press("j")
        await keys.press("Enter")
        await expect(page.get_by_role("heading", name="Run 2")).to_be_visible()
        await keys.press("j")
        await keys.press("Enter")
        await expect(page.get_by_role("status").last).to_contain_text("would be done")
        await page.get_by_label("Reason").focus()
        await keys.type("I looked")
        await keys.press("Enter")
        await expect(page.get_by_role("status").last).to_contain_text("part 32: done")


async def is_one_row(page: Page) -> None:
    """Look at the frame above a page: one thing beside the other, and none over another."""
    boxes = await page.evaluate(
        "[...document.querySelectorAll('.frame nav a, .me span, .me button')]"
        ".map(one => one.getBoundingClientRect()).map(box => [box.left, box.right, box.top])"
    )
    assert len(boxes) == 5
    assert max(top for _, _, top in boxes) - min(top for _, _, top in boxes) < 20
    assert all(before[1] <= after[0] for before, after in pairwise(boxes)), boxes


@pytest.mark.parametrize("width", [320, 390])
async def test_on_a_telephone_nothing_is_wider_than_the_screen(
    sqlite_url: str, browser: Browser, width: int
) -> None:
    async with screen(
        sqlite_url, browser, viewport={"width": width, "height": 700}, color_scheme="dark"
    ) as seen:
        await seen.sign_in()
        for path in (
            "", "/runs/2?words=1", "/runs/14?words=1", "/search", "/acts/recover",
            "/acts/run/2/requeue",
        ):  # fmt: skip
            await seen.page.goto(f"{seen.base}{path}")
            wide = await seen.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, path
            await is_one_row(seen.page)
        paper = await seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == "rgb(18, 24, 31)"


_SHIFTS = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.shifted += entry.value;
  }).observe({ type: "layout-shift", buffered: false });
}"""


def _one_more(tx: Tx) -> None:
    """Nobody is wanted any more, and something new stands still."""
    tx.execute(sa.update(tables.chats).where(tables.chats.c.id == 12).values(handoff_at=None))
    tx.execute(
        sa.update(tables.accounts)
        .where(tables.accounts.c.id == 1)
        .values(down_since=NOW - 5, down_reason="the bot was <b>deleted</b>")
    )


async def test_what_comes_and_goes_moves_nothing_until_somebody_wants_to_see_it(
    sqlite_url: str, browser: Browser
) -> None:
    async with screen(sqlite_url, browser) as seen:
        page = seen.page
        await seen.sign_in()
        first = page.locator("article.stuck").first
        wanted = page.locator("[data-key=wanted-chat-12]")
        await expect(wanted).to_be_visible()
        await page.evaluate(_SHIFTS)
        await seen.behind.db.write(_one_more)
        await expect(page.locator("#bar")).to_contain_text("2 new, 1 gone")
        await expect(wanted).to_have_attribute("data-gone", "")
        await expect(page.locator(".figures")).to_contain_text("want a person0")
        await expect(first).to_have_attribute("data-key", "dead_lease-run-12")
        assert await page.evaluate("window.shifted") == 0
        await page.get_by_role("button", name="Show").click()
        await expect(wanted).to_have_count(0)
        await expect(page.locator("[data-key=channel_down-account-1]")).to_contain_text(
            "the bot was <b>deleted</b>"
        )


async def test_a_link_in_somebodys_mail_opens_for_who_is_signed_in(
    sqlite_url: str, browser: Browser
) -> None:
    async with screen(sqlite_url, browser) as seen:
        page = seen.page
        await seen.sign_in()
        await page.route(
            "https://mail.example/",
            lambda route: route.fulfill(
                content_type="text/html", body=f'<a href="{seen.base}/runs/3">look</a>'
            ),
        )
        await page.goto("https://mail.example/")
        await page.get_by_role("link", name="look").click()
        await expect(page.get_by_role("heading", name="Run 3")).to_be_visible()


async def test_words_of_people_are_words_in_every_place_where_they_stand(
    sqlite_url: str, browser: Browser
) -> None:
    nasty = "<img src=x onerror=alert(1)></text></svg><script>alert(2)</script>{{ 7*7 }}\u202e"

    def say(tx: Tx) -> None:
        tx.execute(sa.update(tables.inbound).values(text=nasty))
        tx.execute(sa.update(tables.outbox).values(text=nasty, error=nasty))
        tx.execute(sa.update(tables.runs).values(detail=nasty))
        tx.execute(sa.update(tables.accounts).values(name=nasty, down_reason=nasty, down_since=1))
        tx.execute(sa.update(tables.events).values(why=nasty))

    async with screen(sqlite_url, browser) as seen:
        page = seen.page
        page.on("dialog", lambda dialog: seen.complaints.append(dialog.message))
        await seen.behind.db.write(say)
        await seen.sign_in()
        for path in ("", "/search", "/runs/2?words=1", "/runs/6?words=1"):
            await page.goto(f"{seen.base}{path}")
            # The live part puts it in once more.
            if path == "":
                await expect(page.locator("dd").first).to_have_text("0")
                await seen.behind.db.write(_one_more)
                await expect(page.locator("#bar button")).to_be_visible()
                await page.locator("#bar button").click()
            assert await page.locator("main img, main script").count() == 0
            assert "{{ 7*7 }}" in await page.inner_text("main"), path


async def test_a_page_that_stands_still_since_others_were_opened_follows_again_when_asked(
    sqlite_url: str, browser: Browser
) -> None:
    async with screen(sqlite_url, browser) as seen:
        page, bar = seen.page, seen.page.locator("#bar")
        await seen.sign_in()
        await expect(page.locator("dd").first).to_be_visible()
        async with AsyncExitStack() as later:
            cookies = {one["name"]: one["value"] for one in await page.context.cookies()}
            other = await later.enter_async_context(httpx.AsyncClient(cookies=cookies))
            for _ in range(OF_SESSION):
                stream = other.stream("GET", f"{seen.base}/live/now")
                answer = await later.enter_async_context(stream)
                assert answer.status_code == 200
            await expect(bar).to_contain_text("Many pages are open: this one stands still.")
        await bar.get_by_role("button", name="Follow this one").click()
        await expect(bar).to_have_text("")
        await seen.behind.db.write(_one_more)
        await expect(bar).to_contain_text("2 new, 1 gone")
