"""The script of the page's chat, as it is served."""

from __future__ import annotations

import gzip
import json
import re
from importlib.resources import files

import pytest
from starlette.requests import Request
from starlette.responses import Response

from bot.texts import Words
from bot.wiring.channels import ON_A_PAGE
from channels.web.widget import Widget, bare, script

TEXTS = Words.load().table(ON_A_PAGE)
SOURCE = (files("channels.web") / "answerback.js").read_text(encoding="utf-8")


async def asked(**headers: str) -> Response:
    """The answer to a browser that sends these headers."""
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return await Widget(TEXTS).serve(Request({"type": "http", "method": "GET", "headers": raw}))


async def test_a_browser_loads_less_than_25_kb() -> None:
    answer = await asked(accept_encoding="gzip, br")
    assert answer.headers["content-encoding"] == "gzip"
    assert len(answer.body) < 25_000
    assert gzip.decompress(bytes(answer.body)).decode() == script(TEXTS)


def test_what_is_left_out_are_comments_and_indentation_alone() -> None:
    served = bare(SOURCE).splitlines()
    lines = iter(SOURCE.splitlines())
    assert all(any(line in whole for whole in lines) for line in served)
    assert not [line for line in served if line.startswith((" ", "//", "/*"))]
    for kept in ('a = "b // c";', "fetch(`https://x`); // it's", "a = b / c // 'd", "/x/*y/ ;"):
        assert bare(kept) == kept
    assert bare("  a(); // b\n/* c\n   d */\n\n// e\n") == "a();"


async def test_who_has_the_newest_script_is_told_so() -> None:
    answer = await asked()
    assert bytes(answer.body).decode() == script(TEXTS)
    tag = answer.headers["etag"]
    for held in (tag, f"W/{tag}"):
        again = await asked(if_none_match=held)
        assert (again.status_code, again.body) == (304, b"")
    assert (await asked(if_none_match='"old"')).status_code == 200


def test_every_language_is_in_it_with_every_word() -> None:
    found = re.search(r"const TEXTS = (\{.*\});", script(TEXTS))
    assert found is not None
    texts = json.loads(found[1])
    assert set(texts) == set(Words.load().languages)
    assert all(set(words) == set(ON_A_PAGE) for words in texts.values())


def test_the_script_says_what_there_is_and_all_of_it() -> None:
    named = set(re.findall(r'"([A-Z_]{3,})"', SOURCE))
    assert named - {"GET", "POST", "DELETE"} == set(ON_A_PAGE)


@pytest.mark.parametrize("way", ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"])
def test_no_text_becomes_html(way: str) -> None:
    assert way not in SOURCE
