"""The pages of a service in which everything went wrong that can."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser

import pytest

from bot.domain.ending import Ending
from tests.cli.seeded import LONG_REQUEST
from tests.kit.operator import OperatorBrowser, seeded_page


@pytest.fixture
async def ada(sqlite_url: str) -> AsyncIterator[OperatorBrowser]:
    async with seeded_page(sqlite_url) as ada:
        yield ada


def text_of(html: str) -> str:
    """The words that a person reads."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


async def test_now_lists_what_stands_still_worst_first_with_cause_age_and_act(
    ada: OperatorBrowser,
) -> None:
    page = (await ada.get("")).text
    kinds = re.findall(r'<span class="kind">([^<]+)</span>', page)
    assert kinds.index("dead lease") < kinds.index("wants a person") < kinds.index("sent? unknown")
    said = text_of(page)
    assert "worker-2 died or hangs while it worked on run 12" in said
    assert "/operator/acts/recover" in page
    assert "/operator/acts/part/" in page
    assert "/operator/acts/chat/12/resume" in page
    assert "the token is not valid" in said
    assert "worker-1" in said
    assert "in flight" in said


async def test_a_run_is_drawn_with_its_verdict_and_evidence_and_what_may_be_done(
    ada: OperatorBrowser,
) -> None:
    page = (await ada.get("/runs/2")).text
    assert '<svg xmlns="http://www.w3.org/2000/svg" class="run-picture"' in page
    assert "<style" not in page
    said = text_of(page)
    assert "ended as uncertain" in said
    assert "evidence" in said
    assert "/operator/acts/run/2/requeue" in page
    assert (await ada.get("/runs/999999")).status_code == 404


async def test_words_are_hidden_until_somebody_asks_and_asking_is_recorded(
    ada: OperatorBrowser,
) -> None:
    question = "Where is my order"
    hidden = (await ada.get("/runs/1")).text
    shown = (await ada.get("/runs/1?words=1")).text
    assert "It left" not in hidden
    assert "It left" in shown
    assert question not in hidden
    again = (await ada.get("/runs/1?words=1")).text
    wide = again.partition('class="picture narrow"')[0]
    assert wide.count("operator@page</tspan>: read the words") == 1


async def test_words_of_people_are_shown_and_never_obeyed(ada: OperatorBrowser) -> None:
    for path in ("/runs/6?words=1", "/search", "/search?q=700100204"):
        page = (await ada.get(path)).text
        assert "\x1b" not in page
        assert "\u202e" not in page


async def test_search_finds_a_run_by_number_request_receipt_and_address(
    ada: OperatorBrowser,
) -> None:
    async def found(query: str) -> list[int]:
        page = (await ada.get(f"/search?{query}")).text
        return [int(n) for n in re.findall(r'href="/operator/runs/(\d+)"', page)]

    assert await found("q=3") == [3]
    assert await found("q=tg-700100201-41") == [1]
    assert await found(f"q={LONG_REQUEST}") == [14]
    assert await found("q=9031") == [1], "by the receipt of a part"
    assert 3 in await found("q=whatsapp%3A%2B15550100022")
    assert 3 in await found("q=%2B15550100022")
    everything = await found("")
    assert set(await found("ending=uncertain")) == {2, 3} & set(everything)
    assert await found("q=nobody") == []
    assert await found("q=%27%3B+drop+table+runs&state=nonsense&before=x") == []
    assert max(await found("before=5")) == 4
    page = (await ada.get("/search?q=5")).text
    for ending in Ending:
        assert f"/operator/search?q=5&amp;ending={ending.value}" in page


async def test_lists_have_no_whole_phone_number(ada: OperatorBrowser) -> None:
    for path in ("", "/search", "/runs/3", "/search?q=%2B1555"):
        assert "15550100022" not in (await ada.get(path)).text, path


class _Outline(HTMLParser):
    """Everything in a page that could run or load something."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "script" and not (given.get("src") or "").startswith("/operator/static/"):
            self.found.append("script")
        if tag in ("style", "iframe", "object", "embed", "base"):
            self.found.append(tag)
        for name, value in given.items():
            if name.startswith("on") or name == "style":
                self.found.append(f"{tag} {name}")
            if name in ("href", "src", "action") and not (value or "").startswith(("/", "#")):
                self.found.append(f"{tag} {name}={value}")


async def test_no_page_has_a_script_a_style_or_an_address_of_its_own(ada: OperatorBrowser) -> None:
    for path in ("", "/runs/6?words=1", "/search", "/acts/recover", "/acts/run/2/requeue"):
        page = await ada.get(path)
        assert page.status_code == 200
        outline = _Outline()
        outline.feed(page.text)
        assert outline.found == [], path


async def test_each_act_is_shown_before_it_is_done_and_changes_nothing_by_that(
    ada: OperatorBrowser,
) -> None:
    plan = text_of((await ada.get("/acts/run/8/requeue")).text)
    assert "run 8: would be" in plan
    assert text_of((await ada.get("/acts/run/8/requeue")).text) == plan
    for path in ("/acts/run/999/requeue", "/acts/run/1/nonsense", "/acts/part/0/lost"):
        assert (await ada.get(path)).status_code == 404, path
