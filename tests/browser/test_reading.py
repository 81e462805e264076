"""Reading with a keyboard, with the ears, from right to left, and through a long history."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from playwright.async_api import expect

from tests.browser.site import Site
from tests.fakes.faults import held_after_storing

pytestmark = pytest.mark.asyncio(loop_scope="session")

LISTEN = """() => { window.told = [];
  const at = document.querySelector("answerback-chat").shadowRoot.querySelector("[role=status]");
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
    site.ground.agent.words = staticmethod(lambda text: f"**re**: {text}")
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


async def test_a_history_of_a_thousand_is_read_page_by_page(site: Site) -> None:
    program = await site.serve()
    device = await site.device()
    tab = await site.tab(device)
    await tab.write("the first")
    await tab.becomes("the first", "Answered")
    await tab.page.close()
    await program.kill()
    _lengthen(site.ground.world.database_url.removeprefix("sqlite:///"), 998)
    await site.serve()
    tab = await site.tab(device)
    mine = tab.page.locator("li.mine .bubble")
    await expect(mine).to_have_count(50)
    await expect(mine.last).to_have_text("message 998")
    earlier = tab.page.get_by_role("button", name="Earlier messages")
    for count in range(100, 1000, 50):
        await earlier.click()
        await expect(tab.bubbles).to_have_count(count)
    await earlier.click()
    await expect(earlier).to_be_hidden()
    wanted = ["the first", "re: the first", *(f"message {n}" for n in range(1, 999))]
    assert await tab.bubbles.all_text_contents() == wanted


def _lengthen(path: str, by: int) -> None:
    """Add so many messages to the only chat, as copies of its first."""
    with closing(sqlite3.connect(path)) as db, db:
        own = {"id": "id + n", "text": "'message ' || n"}
        own |= dict.fromkeys(("request_id", "provider_id"), "request_id || '-' || n")
        names = [row[1] for row in db.execute("PRAGMA table_info(inbound)")]
        values = ", ".join(own.get(name, name) for name in names)
        numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?)"
        db.execute(f"INSERT INTO inbound {numbers} SELECT {values} FROM inbound, c", (by,))
        ((last,),) = db.execute("SELECT n FROM followed")
        db.execute(
            "INSERT INTO journal (chat, n, at, kind, message)"
            f" SELECT chat, {last} + id - 1, received_at, 'accepted', id FROM inbound WHERE id > 1"
        )
        db.execute("INSERT INTO shown SELECT id, chat, 'over' FROM inbound WHERE id > 1")
        db.execute(f"UPDATE followed SET n = n + {by}")
