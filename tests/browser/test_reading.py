"""Reading with a keyboard, with the ears, from right to left, and through a long history."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.proxy import How, answer
from tests.browser.site import Site
from tests.fakes.faults import held_after_storing

pytestmark = pytest.mark.asyncio(loop_scope="session")

LISTEN = """() => { window.told = [];
  const at = document.querySelector("answerback-chat").shadowRoot.querySelector("[role=status]");
  new MutationObserver(() => told.push(at.textContent)).observe(at, { childList: true }); }"""

FOCUSED = """() => { const it = document.querySelector("answerback-chat").shadowRoot.activeElement;
  return it ? it.getAttribute("aria-label") : ""; }"""


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
    assert [it for it in await tab.page.evaluate("() => told") if it] == [
        *("Working on it", "re: hello")
    ]
    # What was told is not there to be read a second time.
    await expect(tab.page.get_by_role("status")).to_be_empty()
    for name in ("Write a message", "Send", "Attach a file", "Close chat"):
        await expect(tab.page.get_by_label(name, exact=True).first).to_be_visible()


async def test_a_screen_reader_is_told_who_wrote_each_message(site: Site) -> None:
    await site.serve()
    tab = await site.tab()
    await tab.write("hello")
    await tab.becomes("hello", "Answered")
    await expect(tab.page.locator(".root")).to_match_aria_snapshot(
        """
        - dialog "Write to us":
          - banner: Write to us
          - list "Write to us":
            - listitem: /^Assistant Hi! Just write to me/
            - listitem: You hello Answered
            - listitem:
              - text: Assistant
              - paragraph: "re: hello"
          - button "Attach a file"
          - textbox "Write a message"
          - button "Send"
        - button "Close chat"
        - status
        """
    )
    order = []
    for _ in range(7):
        await tab.page.keyboard.press("Tab")
        order.append(await tab.page.evaluate(FOCUSED))
    window = ["Close chat", "Write to us", "Attach a file", "Write a message"]
    assert order == ["Send", "Close chat", "", *window]


def event(kind: str, n: int, **data: Any) -> str:
    whole = {"n": n, "at": 0, "request_id": "r", **data}
    return f"event: {kind}\nid: {n}\ndata: {json.dumps(whole)}\n\n"


@pytest.mark.parametrize("seen", ["as it comes", "in a snapshot", "in the history"])
async def test_beside_an_answer_no_turn_is_worked_on(site: Site, seen: str) -> None:
    """Such an answer's end is an event of its own, which comes later."""
    await site.serve()
    mine = {"kind": "accepted", "text": "hi", "status": "pending", "queued": False}
    first, second = ({**mine, "n": n, "at": 0, "request_id": r} for n, r in ((1, "q"), (3, "r")))
    reply = {"text": "re: hi", "by": "agent", "files": [], "buttons": []}
    as_said = {**reply, "kind": "message", "n": 5, "at": 0, "request_id": "r"}
    turns = [
        {"request_id": r, "status": "pending", "queued": False, "answering": seen != "as it comes"}
        for r in "qr"
    ]
    said = [first, second] if seen == "as it comes" else [first, second, as_said]
    whole = {"n": len(said) + 2, "unread": 0, "messages": said, "more": False, "turns": turns}
    stream = f"event: snapshot\nid: {whole['n']}\ndata: {json.dumps(whole)}\n\n"
    if seen == "as it comes":
        stream += event("message", 5, **reply)
    streams = [answer(200, stream, "text/event-stream")] + [How.SILENT] * 50
    if seen == "in the history":
        streams = [How.SILENT] * 50
        page = json.dumps({"messages": said, "more": False})
        site.proxy.will("GET messages", *[answer(200, page, "application/json")] * 50)
    site.proxy.will("GET events", *streams)
    device = await site.device()
    await device.clock.install()
    tab = await site.tab(device)
    while not await tab.bubbles.filter(has_text="re: hi").count():
        await device.clock.run_for(5_000)
    await tab.shows("hi", "hi", "re: hi")
    await expect(tab.page.locator("li.mine .phase")).to_have_text(["", ""])


async def test_the_words_that_an_agent_put_beside_a_file_are_shown(site: Site) -> None:
    await site.serve()
    file = {"kind": "document", "name": "orders.csv", "caption": "Your **orders**", "ref": "p-0"}
    said: dict[str, Any] = {"kind": "message", "n": 1, "at": 0, "request_id": "r", "text": ""}
    said |= {"buttons": [], "files": [file]}
    whole = {"n": 1, "unread": 0, "messages": [said], "turns": []}
    stream = f"event: snapshot\nid: 1\ndata: {json.dumps(whole)}\n\n"
    site.proxy.will("GET events", answer(200, stream, "text/event-stream"), *[How.SILENT] * 50)
    tab = await site.tab()
    await expect(tab.page.locator("li.message .bubble strong")).to_have_text("orders")
    await expect(tab.page.locator("li.message .link")).to_have_text("orders.csv")


async def test_arabic_is_written_from_right_to_left(site: Site) -> None:
    await site.serve()
    site.proxy.lang = "ar"
    tab = await site.tab()
    await expect(tab.page.locator(".root")).to_have_attribute("dir", "rtl")
    await tab.write("كم الساعة؟", "what time is it?")
    await tab.becomes("كم الساعة؟", "تمت الإجابة")
    mine = tab.page.locator("li.mine .bubble")
    await expect(mine).to_have_count(2)
    for number, direction in enumerate(("rtl", "ltr")):
        await expect(mine.nth(number)).to_have_css("direction", direction)


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
