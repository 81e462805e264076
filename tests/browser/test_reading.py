"""Who reads with a keyboard, with the ears, from right to left, or a long history."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.site import Site
from tests.fakes.faults import held_after_storing

pytestmark = pytest.mark.asyncio(loop_scope="session")

LISTEN = """() => { window.told = []; const at = document.querySelector("answerback-chat").shadowRoot
  .querySelector("[role=status]");
  new MutationObserver(() => told.push(at.textContent)).observe(at, { childList: true }); }"""


async def test_the_keyboard_opens_writes_and_closes_and_the_pages_own_keys_keep_quiet(
    site: Site,
) -> None:
    await site.serve()
    tab = await site.tab(opened=False)
    await tab.page.evaluate(
        "() => { window.keys = 0; document.addEventListener('keydown', () => keys += 1); }"
    )
    await tab.launch.focus()
    await tab.page.keyboard.press("Enter")
    await expect(tab.box).to_be_focused()
    before = await tab.page.evaluate("() => keys")
    await tab.page.keyboard.type("two")
    await tab.page.keyboard.press("Shift+Enter")
    await tab.page.keyboard.type("lines")
    await tab.page.keyboard.press("Enter")
    await tab.shows("two\nlines", "re: two\nlines")
    await tab.page.keyboard.press("Escape")
    await expect(tab.launch).to_be_focused()
    await expect(tab.page.get_by_role("dialog")).to_be_hidden()
    assert await tab.page.evaluate("() => keys") == before


async def test_a_screen_reader_hears_working_and_the_answer_once(site: Site) -> None:
    await site.serve()
    site.ground.agent.words = staticmethod(lambda text: f"**re**: {text}")  # type: ignore[method-assign]
    slow = site.ground.agent.fail("turn", held_after_storing())
    tab = await site.tab()
    await tab.page.evaluate(LISTEN)
    await tab.write("hello")
    await tab.becomes("hello", "Working on it")
    slow.release()
    await tab.becomes("hello", "Answered")
    assert await tab.page.evaluate("() => told") == ["Working on it", "re: hello"]
    for name in ("Write a message", "Send", "Attach a file", "Close chat"):
        await expect(tab.page.get_by_label(name, exact=True).first).to_be_visible()


async def test_arabic_is_written_from_right_to_left(site: Site) -> None:
    await site.serve()
    site.proxy.lang = "ar"
    tab = await site.tab()
    await expect(tab.page.locator(".root")).to_have_attribute("dir", "rtl")
    await tab.write("كم الساعة؟", "what time is it?")
    await tab.becomes("كم الساعة؟", "تمت الإجابة")
    mine = tab.page.locator("li.mine .bubble")
    directions = await mine.evaluate_all("all => all.map((it) => getComputedStyle(it).direction)")
    assert directions == ["rtl", "ltr"]
