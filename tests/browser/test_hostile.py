"""Nothing that a model or a person writes runs, loads, or looks like another place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.corpus import HTML, LONG, MARKDOWN
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


def messages(texts: list[str], *, bare: bool) -> list[dict[str, Any]]:
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
    site: Site, texts: list[str], headers: dict[str, str] | None = None, *, bare: bool = False
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
    shown = snapshot(messages(texts, bare=bare))
    site.proxy.will("GET events", *[shown] * 50)
    tab = await site.tab(device)
    await expect(tab.page.locator("li.item:not(:nth-child(2))")).to_have_count(
        len(texts) if bare else 2 * len(texts)
    )
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


async def test_b167_what_is_long_is_shown_and_stays_small(site: Site) -> None:
    tab, _ = await visited(site, LONG, bare=True)
    sizes = await tab.page.evaluate(
        """() => Array.from(document.querySelector("answerback-chat").shadowRoot
          .querySelectorAll("li.message .bubble"), (it) => it.querySelectorAll("*").length)"""
    )
    assert max(sizes) < 2000


async def test_b167_the_agent_and_the_person_may_write_what_they_like(site: Site) -> None:
    await site.serve()
    site.ground.agent.words = staticmethod(lambda text: text)
    device = await site.device()
    await device.add_init_script(WATCH)
    tab = await site.tab(device)
    texts = ["<img src=x onerror=alert(1)>", "[t](javascript:alert(1))", "**b** <b>x</b>"]
    await tab.write(*texts)
    await tab.becomes(texts[-1], "Answered")
    await tab.reload()
    await expect(tab.page.locator("li.mine .bubble")).to_have_text(texts)
    assert await tab.page.evaluate("() => seen") == []
