"""Nothing that a model or a person writes runs, loads, or looks like another place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.corpus import HTML, LONG, MARKDOWN, PLAIN
from tests.browser.proxy import answer
from tests.browser.site import Site, Tab

pytestmark = pytest.mark.asyncio(loop_scope="session")

STRICT = {
    "Content_Security_Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; require-trusted-types-for 'script'"
}
WATCH = """window.seen = [];
for (const name of ["alert", "confirm", "prompt", "print"]) window[name] = (x) => seen.push(name);
addEventListener("securitypolicyviolation", (e) => seen.push(e.violatedDirective));"""
TREE = """() => {
  const chat = document.querySelector("answerback-chat").shadowRoot;
  const said = (it, name) => it.getAttribute(name) || "";
  return Array.from(chat.querySelectorAll("li.item *"),
    (it) => [it.localName, it.getAttributeNames(), said(it, "href"), said(it, "rel")]);
}"""
MARK_LINKS = """() => {
  const chat = document.querySelector("answerback-chat").shadowRoot;
  const links = new Map(Array.from(chat.querySelectorAll("li.item a"), (it) => [it.href, it]));
  Array.from(links.values()).forEach((it, n) => { it.dataset.number = n; });
  return Array.from(links.keys());
}"""
SIZES = """() => Array.from(
  document.querySelector("answerback-chat").shadowRoot.querySelectorAll("li.message .bubble"),
  (it) => {
    const walk = document.createTreeWalker(it);
    let nodes = 0;
    while (walk.nextNode()) nodes += 1;
    return [it.querySelectorAll("*").length, nodes];
  })"""
ATTRIBUTES = {
    "a": {"href", "rel", "target"},
    "ol": {"start"},
    "div": {"class", "dir"},
    "span": {"class"},
    "button": {"class", "type", "disabled"},
    **{tag: set[str]() for tag in ("p", "strong", "em", "del", "code", "pre", "ul", "li")},
    "blockquote": set(),
}


def snapshot(messages: list[dict[str, Any]]) -> bytes:
    """A stream that has these messages, and ends."""
    data = {"n": len(messages), "unread": 0, "messages": messages, "turns": []}
    return answer(200, f"event: snapshot\ndata: {json.dumps(data)}\n\n", "text/event-stream")


def messages(texts: list[str], *, bare: bool = False) -> list[dict[str, Any]]:
    """Each as the agent's answer, and unless `bare` also as the person's message, a file's name
    and a choice."""
    out: list[dict[str, Any]] = []
    for text in texts:
        offer = [{"label": text, "data": "x"}, {"label": "t", "url": text}]
        file = {"name": text, "mime": "text/html", "size": 1, "ref": "x"}
        for kind in ("message",) if bare else ("accepted", "message"):
            one = {"n": len(out) + 1, "kind": kind, "request_id": f"r{len(out)}", "text": text}
            one |= {"status": "completed", "queued": False, "at": 0}
            extras = {"files": [file], "buttons": offer if kind == "message" else []}
            out.append(one if bare else one | extras)
    return out


async def visited(
    site: Site, texts: list[str], headers: dict[str, str] | None = None
) -> tuple[Tab, list[str]]:
    """The page with these in its history, and the places outside that it asked."""
    await site.serve()
    site.proxy.headers = headers or {}
    outside: list[str] = []
    device = await site.device()
    await device.add_init_script(WATCH)
    device.on(
        "request",
        lambda r: None if r.url.startswith((site.proxy.url, "data:")) else outside.append(r.url),
    )
    site.proxy.will("GET events", *[snapshot(messages(texts))] * 50)
    tab = await site.tab(device)
    await expect(tab.page.locator("li.item:not(:nth-child(2))")).to_have_count(2 * len(texts))
    return tab, outside


@pytest.mark.parametrize("headers", [{}, STRICT], ids=["no policy", "strict policy"])
async def test_b167_nothing_of_the_corpus_runs_or_calls_home(
    site: Site, headers: dict[str, str]
) -> None:
    tab, outside = await visited(site, HTML + MARKDOWN, headers)
    for name, attributes, href, rel in await tab.page.evaluate(TREE):
        assert name in ATTRIBUTES, name
        assert set(attributes) <= ATTRIBUTES[name], (name, attributes)
        if name == "a":
            assert href.startswith(("https://", "http://", "mailto:")), href
            assert "noopener" in rel
    theirs = tab.page.locator("li.message .bubble")
    shown = await theirs.all_text_contents()
    assert [text.split() for text in shown[: len(HTML)]] == [text.split() for text in HTML]
    assert await tab.page.evaluate("() => seen") == []
    assert outside == []


async def test_b167_a_link_shows_where_it_leads(site: Site) -> None:
    tab, _ = await visited(site, MARKDOWN)
    for text, shown in {
        "[https://bank.test](https://evil.test)": "https://bank.test (evil.test)",
        "[https://bank.test/](https://bank.test@evil.test/)": "https://bank.test/ (evil.test)",
        "https://bank.test@evil.test/": "https://bank.test@evil.test/ (evil.test)",
        "![x](https://evil.test/?q=1)": "x (evil.test)",
    }.items():
        bubble = tab.page.locator("li.message .bubble").nth(MARKDOWN.index(text))
        await expect(bubble).to_have_text(shown)


async def test_b167_every_link_leads_where_it_says_and_tells_nothing_of_the_page(
    site: Site,
) -> None:
    tab, _ = await visited(site, MARKDOWN)
    device = tab.page.context
    asked: list[tuple[str, str | None]] = []

    async def outside(route: Route) -> None:
        asked.append((route.request.url, await route.request.header_value("referer")))
        await route.fulfill(body="elsewhere")

    await device.route(lambda url: not url.startswith(site.proxy.url), outside)
    before = tab.page.url
    hrefs = await tab.page.evaluate(MARK_LINKS)
    for number, href in enumerate(hrefs):
        link = tab.page.locator(f"a[data-number='{number}']")
        if href.startswith("mailto:"):
            await link.click()
            continue
        async with device.expect_page() as opening:
            await link.click()
        await at_home_nowhere(await opening.value, href)
    assert {url.partition("#")[0] for url, _ in asked} >= {
        href.partition("#")[0] for href in hrefs if not href.startswith("mailto:")
    }
    assert {referrer for _, referrer in asked} == {None}
    assert tab.page.url == before
    assert await tab.page.evaluate("() => seen") == []


async def at_home_nowhere(page: Page, href: str) -> None:
    """The page that a click opened is that one, and does not know who opened it."""
    await page.wait_for_url(href)
    assert await page.evaluate("() => [opener, document.referrer]") == [None, ""]
    await page.close()


@pytest.mark.long
async def test_b167_what_is_built_to_be_slow_is_shown_and_costs_hardly_more_than_words(
    site: Site,
) -> None:
    """In CPU of the page's main thread: what is quadratic costs a hundred times as much."""
    await site.serve()
    tab, words = await busy(site, [PLAIN] * len(LONG))
    await tab.page.close()
    tab, hostile = await busy(site, LONG)
    assert "words" not in await tab.page.locator("li.message .bubble").last.inner_text()
    assert hostile < 10 * words
    sizes = await tab.page.evaluate(SIZES)
    assert max(elements for elements, _ in sizes) < 2_500
    assert max(nodes for _, nodes in sizes) < 5_000


async def busy(site: Site, texts: list[str]) -> tuple[Tab, Any]:
    """The page with these in its history, and the seconds of CPU that its main thread spent until
    all was painted."""
    site.proxy.plans.clear()
    site.proxy.will("GET events", *[snapshot(messages(texts, bare=True))] * 50)
    tab = Tab(await (await site.device()).new_page())
    session = await tab.page.context.new_cdp_session(tab.page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})
    await tab.page.goto(site.proxy.url)
    await tab.open()
    await expect(tab.page.locator("li.message")).to_have_count(len(texts))
    await tab.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")
    told = await session.send("Performance.getMetrics")
    return tab, next(one["value"] for one in told["metrics"] if one["name"] == "TaskDuration")


async def test_b167_the_agent_and_the_person_may_write_what_they_like(site: Site) -> None:
    await site.serve()
    site.ground.agent.words = staticmethod(lambda text: text)
    device = await site.device()
    await device.add_init_script(WATCH)
    tab = await site.tab(device)
    texts = [
        "<img src=x onerror=alert(1)>",
        "![x](https://evil.test/?q=1)",
        "[a][1]\n\n[1]: javascript:alert(1)",
        "[t](JaVaScRiPt:alert(1))",
        "[t](java\nscript:alert(1))",
        "[t](data:text/html,x)",
        "[https://bank.test](https://evil.test)",
        "**b** <b>x</b>",
        "*_" * 1_000,
    ]
    await tab.write(*texts)
    await tab.becomes(texts[-1], "Answered")
    await tab.reload()
    await expect(tab.page.locator("li.mine .bubble")).to_have_text(texts)
    assert await tab.page.evaluate("() => seen") == []
