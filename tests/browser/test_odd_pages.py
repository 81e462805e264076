"""Pages and browsers as they come: other clocks, small windows, colours, scripts put in twice."""

from __future__ import annotations

from itertools import product
from typing import Any, Literal

import pytest
from playwright.async_api import FilePayload, expect

from tests.browser.site import Site
from tests.browser.test_outbox import BLOCKED
from tests.browser.test_secrets import signed
from tests.fakes.faults import held_after_storing
from tests.limits import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

A_YEAR = 365 * 86_400_000
SHIFTED = "{{ const now = Date.now; window.shift = {0}; Date.now = () => now() + window.shift; }}"


@pytest.mark.parametrize("first", [A_YEAR, -A_YEAR], ids=["ahead", "behind"])
async def test_a_clock_that_is_a_year_off_and_then_set_right_changes_nothing(
    site: Site, first: int
) -> None:
    await site.serve()
    device = await site.device()
    await device.add_init_script(SHIFTED.format(first))
    tab = await site.tab(device)
    await tab.write("one")
    await tab.becomes("one", "Answered")
    await tab.page.evaluate("() => { window.shift = 0; }")
    await tab.write("two")
    await tab.shows("one", "re: one", "two", "re: two")
    await tab.page.evaluate("(jwt) => answerback.identify(jwt)", signed("ada"))
    await tab.write("three")
    await tab.shows("one", "re: one", "two", "re: two", "three", "re: three")
    await tab.page.evaluate("() => answerback.signOut()")
    await tab.shows()
    assert not [key for key in await tab.stored() if key.startswith("answerback")]


async def test_a_guest_of_a_clock_that_was_a_year_ahead_gets_a_fresh_token_nevertheless(
    site: Site,
) -> None:
    await site.serve()
    device = await site.device()
    await device.add_init_script(SHIFTED.format("window.name ? 0 : 31536e6"))
    tab = await site.tab(device)
    await tab.write("hello")
    await tab.becomes("hello", "Answered")
    began = len(site.proxy.lines("POST session"))
    await tab.page.evaluate("() => { window.name = 'set right'; }")
    await tab.reload()
    await tab.shows("hello", "re: hello")
    await until(lambda: len(site.proxy.lines("POST session")) > began)


@pytest.mark.parametrize(
    "again",
    [
        '<script src="/web/answerback.js"></script>',
        '<script src="/web/answerback.js" async></script>',
        '<script type="module" src="/web/answerback.js" data-title="Ask"></script>',
    ],
    ids=["twice", "async", "module"],
)
async def test_a_script_that_is_there_twice_or_as_a_module_is_one_chat(
    site: Site, again: str
) -> None:
    await site.serve()
    site.proxy.scripts = again
    if "module" in again:
        site.proxy.page = site.proxy.page.replace('<script src="/web/answerback.js"></script>', "")
    tab = await site.tab(opened=False)
    await expect(tab.launch).to_have_count(1)
    await tab.open()
    await tab.write("hello")
    await tab.becomes("hello", "Answered")
    assert len(site.proxy.lines("GET events")) == 1
    assert len(site.proxy.lines("POST messages")) == 1


async def test_a_page_that_comes_back_from_the_cache_of_pages_follows_again(site: Site) -> None:
    await site.serve()
    slow = site.ground.agent.fail("turn", held_after_storing())
    tab = await site.tab()
    await tab.write("hello")
    await tab.becomes("hello", "Working on it")
    event = "(kind) => dispatchEvent(new PageTransitionEvent(kind, { persisted: true }))"
    await tab.page.evaluate(event, "pagehide")
    slow.release()
    other = await site.tab(tab.page.context)
    await other.shows("hello", "re: hello")
    await tab.page.evaluate(event, "pageshow")
    await tab.shows("hello", "re: hello")
    await tab.write("again")
    for one in (tab, other):
        await one.becomes("again", "Answered")


async def test_two_tabs_of_a_browser_that_keeps_nothing_show_one_chat(site: Site) -> None:
    await site.serve()
    device = await site.device()
    await device.add_init_script(BLOCKED)
    one, two = await site.tab(device), await site.tab(device)
    await one.write("from one")
    await one.becomes("from one", "Answered")
    await two.write("from two")
    for tab in (one, two):
        await tab.shows("from one", "re: from one", "from two", "re: from two")


INSIDE = """() => {
  const root = document.querySelector("answerback-chat").shadowRoot;
  const wide = [...root.querySelectorAll(".list, .bubble, .bar, .choices, form, header")]
    .filter((it) => it.localName !== "pre" && it.scrollWidth > it.clientWidth + 1);
  const out = [...root.querySelectorAll("button, textarea")].filter((it) => {
    const box = it.getBoundingClientRect();
    return box.width && !it.closest(".list") && !it.matches(".launch")
      && (box.left < 0 || box.top < 0 || box.right > innerWidth || box.bottom > innerHeight);
  });
  const list = root.querySelector(".list").clientHeight;
  const names = [...wide, ...out].map((it) => it.className || it.localName);
  return names.concat(list < 60 ? "list" : []);
}"""


@pytest.mark.parametrize(
    ("width", "height", "scale"),
    [(1280, 720, 1), (640, 360, 2), (320, 256, 4), (320, 568, 1)],
    ids=["whole", "zoom 200 %", "zoom 400 %", "small phone"],
)
async def test_the_longest_word_and_the_smallest_window_hide_nothing(
    site: Site, width: int, height: int, scale: int
) -> None:
    await site.serve()
    word = "Donaudampfschifffahrt" * 30
    options: dict[str, Any] = {"viewport": {"width": width, "height": height}}
    tab = await site.tab(await site.device(**options, device_scale_factor=scale))
    note = FilePayload(name=f"{'n' * 150}.txt", mimeType="text/plain", buffer=b"x")
    await tab.page.locator("input[type=file]").set_input_files([note])
    await expect(tab.page.locator(".bar .choice")).to_have_count(1)
    assert await tab.page.evaluate(INSIDE) == []
    await tab.write(word)
    await tab.becomes(word, "Answered")
    assert await tab.page.evaluate(INSIDE) == []


CONTRAST = """() => {
  const root = document.querySelector("answerback-chat").shadowRoot;
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (c) => rgb(c).slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const back = (it) => {
    for (; it; it = it.parentElement) {
      const color = getComputedStyle(it).backgroundColor;
      if (rgb(color)[3] !== 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  return [...root.querySelectorAll("header, .bubble, .phase, .launch, .send, textarea, .link")]
    .filter((it) => it.getClientRects().length)
    .map((it) => [light(getComputedStyle(it).color), light(back(it))].sort((a, b) => b - a))
    .map(([high, low]) => (high + 0.05) / (low + 0.05)).sort((a, b) => a - b)[0];
}"""


async def test_words_can_be_read_on_every_colour_that_a_site_chooses(site: Site) -> None:
    await site.serve()
    tab = await site.tab()
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme, color in product(schemes, ("", "#1d6b57", "#ffd400", "white", "#000")):
        site.proxy.scripts = f"<script>window.answerback = {{ color: '{color}' }};</script>"
        await tab.page.emulate_media(color_scheme=scheme)
        await tab.reload()
        told = f"{color} {scheme}"
        await tab.write(told)
        await tab.becomes(told, "Answered")
        assert await tab.page.evaluate(CONTRAST) >= 4.5, told
