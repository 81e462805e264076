"""A message is sent once, in order, whatever becomes of the network and the page."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import BrowserContext, FilePayload, expect

from tests.browser.proxy import How
from tests.browser.site import Site
from tests.limits import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

BLOCKED = """Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("blocked", "SecurityError"); } });"""
FULL = """Storage.prototype.setItem = () => {
  throw new DOMException("full", "QuotaExceededError"); };"""
FILES_THAT_ARE_KEPT = """() => new Promise((done) => {
  indexedDB.open("answerback", 1).onsuccess = ({ target: { result: cabinet } }) => {
    const count = cabinet.transaction("files").objectStore("files").count();
    count.onsuccess = () => { cabinet.close(); done(count.result); };
  };
})"""
KEEPS_NOTHING = "This browser keeps nothing"


def answered(*texts: str) -> list[str]:
    return [line for text in texts for line in (text, f"re: {text}")]


async def online(device: BrowserContext, site: Site, *, is_so: bool) -> None:
    """Take the network away from all tabs, or give it back."""
    site.proxy.shut = not is_so
    if not is_so:
        site.proxy.cut()
    await device.set_offline(not is_so)


async def asked_before_sent(site: Site, since: int, *, fresh: bool) -> None:
    """Each message was asked about before it was sent; where they are `fresh`, before they were
    sent again."""
    known, sent = set[str](), set[str]()
    for asked in site.proxy.asked[since:]:
        if asked.is_for("GET turns/"):
            known.add(asked.target.rpartition("/")[2])
        elif asked.is_for("POST messages"):
            name = json.loads(asked.body)["request_id"]
            assert name in known or (fresh and name not in sent)
            known.discard(name)
            sent.add(name)


@pytest.mark.parametrize("fault", ["", FULL, BLOCKED], ids=["kept", "full", "blocked"])
@pytest.mark.long
async def test_b166_written_offline_in_two_tabs_through_a_reload_and_a_kill(
    site: Site, fault: str
) -> None:
    first = await site.serve()
    device = await site.device()
    if fault:
        await device.add_init_script(fault)
    one = await site.tab(device)
    await one.write("before")
    await one.becomes("before", "Answered")
    site.proxy.shut = True
    site.proxy.cut()
    await one.write("a", "b", "c")
    two = await site.tab(device)
    await expect(two.bubbles.filter(has_text="before")).to_have_count(2)
    note = one.page.locator(".bar", has_text=KEEPS_NOTHING)
    since = len(site.proxy.asked)
    if fault:
        await expect(note).to_be_visible()
        await one.reload()
        await one.shows(*answered("before"))  # As it was said.
        await one.write("a", "b", "c")
    else:
        await expect(note).to_be_hidden()
        await expect(two.bubbles.filter(has_text="c")).to_have_count(1)
        await one.reload()
    for text in "abc":
        await one.becomes(text, "Sending")
    site.proxy.will("POST messages", How.LOST)
    site.proxy.shut = False
    await until(lambda: any(asked.status for asked in site.proxy.lines("POST messages")[1:]))
    await first.kill()
    await site.serve()
    for text in "abc":
        await one.becomes(text, "Answered")
    said = await one.bubbles.all_inner_texts()
    assert [text for text in said if not text.startswith("re: ")] == ["before", "a", "b", "c"]
    await two.shows(*said)
    asked = [line for turn in site.ground.agent.turns() for line in _texts(turn)]
    assert sorted(set(asked)) == ["a", "b", "before", "c"]
    await asked_before_sent(site, since, fresh=bool(fault))


def _texts(turn: object) -> list[str]:
    return [message["text"] for message in turn.params["messages"]]  # type: ignore[attr-defined]


async def test_offline_it_says_so_at_once_and_goes_on_by_itself(site: Site) -> None:
    await site.serve()
    device = await site.device()
    tab = await site.tab(device)
    await online(device, site, is_so=False)
    await tab.says("You are offline. You can go on writing.")
    await tab.write("later")
    await tab.becomes("later", "Will be sent when you are online")
    await online(device, site, is_so=True)
    await tab.becomes("later", "Answered")
    await tab.shows("later", "re: later")
    await tab.says("")


@pytest.mark.parametrize("fault", [FULL, BLOCKED], ids=["full", "blocked"])
async def test_b166_without_storage_it_sends_and_says_that_a_reload_forgets(
    site: Site, fault: str
) -> None:
    await site.serve()
    device = await site.device()
    await device.add_init_script(fault)
    tab = await site.tab(device)
    site.proxy.will("POST messages", How.RESET, How.LOST)
    await tab.write("a", "b")
    note = tab.page.locator(".bar", has_text=KEEPS_NOTHING)
    await expect(note).to_be_visible()
    for text in "ab":
        await tab.becomes(text, "Answered")
    mine = tab.page.locator("li.mine .bubble")
    await expect(mine).to_have_text(["a", "b"])


async def test_nothing_is_called_received_that_the_server_has_not(site: Site) -> None:
    await site.serve()
    tab = await site.tab()
    site.proxy.will("POST messages", How.SILENT)
    await tab.write("hello")
    await until(lambda: bool(site.proxy.lines("POST messages")))
    await tab.becomes("hello", "Sending")
    site.proxy.cut()
    await tab.becomes("hello", "Answered")
    ids = {asked.body for asked in site.proxy.lines("POST messages")}
    assert len(ids) == 1


async def test_a_file_that_was_attached_offline_is_sent_after_a_reload(site: Site) -> None:
    await site.serve()
    tab = await site.tab()
    site.proxy.shut = True
    site.proxy.cut()
    note = FilePayload(name="a & b.txt", mimeType="text/plain", buffer=b"what it says")
    await tab.page.locator("input[type=file]").set_input_files([note])
    await expect(tab.page.locator(".bar .choice")).to_have_text("a & b.txt ×")
    await tab.write("see this")
    # A browser that is killed within this moment says that the file is gone, and keeps the words.
    await until(lambda: tab.page.evaluate(FILES_THAT_ARE_KEPT))
    await tab.reload()
    await tab.becomes("see this", "Sending")
    site.proxy.shut = False
    await tab.becomes("see this", "Answered")
    named = tab.page.locator("li.mine .link", has_text="a & b.txt")
    await expect(named).to_have_count(1)
    async with tab.page.expect_download() as coming:
        await named.click()
    path = await (await coming.value).path()
    assert path.read_bytes() == b"what it says"


async def test_without_locks_each_tab_follows_by_itself(site: Site) -> None:
    """A page on plain http, of another machine, has no locks."""
    await site.serve()
    device = await site.device()
    await device.add_init_script("delete Navigator.prototype.locks; delete crypto.randomUUID;")
    one, two = await site.tab(device), await site.tab(device)
    await one.write("from one")
    await one.becomes("from one", "Answered")
    await two.write("from two")
    for tab in (one, two):
        await tab.shows(*answered("from one", "from two"))


NEXT_TO_ACT = """(name) => new Promise((waits) => {
  const asked = new Promise((done) => window.untilAsked = () => {
    new BroadcastChannel(name).onmessage = ({ data }) => data.kind === "hello" && done();
  });
  navigator.locks.request(name, () => asked);
  navigator.locks.query().then(({ pending }) => pending.length && waits());
})"""
"""Stands in the line of the tabs that want to act, and lets the next one act when, from
`untilAsked()` on, a tab asks who does."""


async def test_a_page_that_asks_while_no_tab_acts_is_told_by_the_one_that_begins_to(
    site: Site,
) -> None:
    await site.serve()
    device = await site.device()
    one = await site.tab(device)
    await one.write("hello")
    await one.becomes("hello", "Answered")
    between = await device.new_page()
    await between.route("**/answerback.js", lambda route: route.abort())
    await between.goto(site.proxy.url)
    await between.evaluate(NEXT_TO_ACT, f"answerback:{site.proxy.url}/web/v1/:")
    two = await site.tab(device)
    await two.shows(*answered("hello"))
    await between.evaluate("untilAsked()")
    site.proxy.shut = True
    site.proxy.cut()
    await one.reload()
    await one.shows(*answered("hello"))


async def test_a_second_tab_takes_over_from_one_that_the_browser_froze(site: Site) -> None:
    await site.serve()
    device = await site.device()
    frozen = await site.tab(device)
    await frozen.write("one")
    await frozen.becomes("one", "Answered")
    browser = await device.new_cdp_session(frozen.page)
    await browser.send("Debugger.enable")
    await browser.send("Debugger.pause")
    other = await site.tab(device)
    await other.write("two")
    await other.becomes("two", "Answered")
    await other.shows(*answered("one", "two"))
    assert len(site.proxy.lines("GET events")) == 2
