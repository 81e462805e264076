"""Markdown to styled text: the same words on every platform, and none lost."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.markdown import Span, Style, Styled, render

MARKS = st.sampled_from(
    [
        *("*", "**", "_", "`", "```\n", "~~", "> ", "- ", "1. ", "# ", "[", "](", ")", "<", ">"),
        *("\n", "\n\n", "  ", "\\", "|", "&amp;", "<b>", "http://x.y", "---\n", "![", "you & I"),
    ]
)


def styled(markdown: str) -> tuple[str, list[tuple[str, str, str]]]:
    page = render(markdown)
    return page.text, [(s.style.value, page.text[s.start : s.end], s.value) for s in page.spans]


@pytest.mark.parametrize(
    ("source", "text", "spans"),
    [
        ("a **b** c", "a b c", [("bold", "b", "")]),
        ("*i* ~~s~~", "i s", [("italic", "i", ""), ("strike", "s", "")]),
        ("# Head\ntext", "Head\ntext", [("bold", "Head", "")]),
        ("run `x = 1` now", "run x = 1 now", [("code", "x = 1", "")]),
        ("```py\nx\n\ny\n```\nend", "x\n\ny\nend", [("pre", "x\n\ny", "py")]),
        ("[docs](https://x.y)", "docs", [("link", "docs", "https://x.y")]),
        ("[`f`](https://x.y)", "f", [("code", "f", ""), ("link", "f", "https://x.y")]),
        ("> said\n> so\n\nyes", "said\nso\n\nyes", [("quote", "said\nso", "")]),
        ("- a\n  - b\n- c", "• a\n  • b\n• c", []),
        ("3. a\n4. b", "3. a\n4. b", []),
        ("- a\n  ```\n  x\n    y\n  ```", "• a\nx\n  y", [("pre", "x\n  y", "")]),
        ("|a|b|\n|-|-|\n|1|22|", "a | b\n--+---\n1 | 22", [("pre", "a | b\n--+---\n1 | 22", "")]),
        ("text\n---\nmore", "text\n———\nmore", []),
    ],
)
def test_marks_become_styles(source: str, text: str, spans: list[tuple[str, str, str]]) -> None:
    assert styled(source) == (text, spans)


@pytest.mark.parametrize(
    "source",
    [
        "Costs $5 and $6 today",
        "Vec<String> and <div>\nhello\n</div>",
        "Set max_retry_count and **use_cache to 3 * 2 `x",
        "[ref]: http://x.y\nsee above",
        "first\nsecond\n\n\n\nthird",
        ">" * 150 + " deep",
    ],
)
def test_what_is_no_markdown_stays_as_it_is(source: str) -> None:
    assert styled(source) == (source, [])


def test_an_address_that_no_platform_opens_is_written_out() -> None:
    assert styled("[file](./a.md) [m](mailto:a@b.c) <http://x.y>") == (
        "file (./a.md) m (mailto:a@b.c) http://x.y",
        [],
    )


def test_an_image_becomes_a_link_to_it() -> None:
    assert styled("![cat](http://x.y/c.png) ![](http://z)") == (
        "cat http://z",
        [("link", "cat", "http://x.y/c.png")],
    )


def test_a_cut_closes_and_reopens_a_style() -> None:
    page = render("```py\nabcdef\n```")
    assert [page.clip(0, 3), page.clip(3, 6)] == [
        Styled("abc", (Span(Style.PRE, 0, 3, "py"),)),
        Styled("def", (Span(Style.PRE, 0, 3, "py"),)),
    ]


def test_written_out_puts_every_address_behind_its_words() -> None:
    assert render("[a](http://a.b) and **[c](http://c.d)**").written_out() == (
        "a (http://a.b) and c (http://c.d)"
    )


def letters(text: str) -> Counter[str]:
    return Counter(re.findall("[a-z]", text.replace("&amp;", "")))


@given(st.lists(MARKS, max_size=40).map("".join))
def test_no_letter_is_lost_whatever_the_marks(source: str) -> None:
    page = render(source)
    shown = page.text + " ".join(span.value for span in page.spans)
    assert letters(source) <= letters(shown)


@given(st.lists(MARKS, max_size=40).map("".join))
def test_styles_lie_inside_the_text_and_never_half_overlap(source: str) -> None:
    page = render(source)
    for span in page.spans:
        assert 0 <= span.start < span.end <= len(page.text)
    for one in page.spans:
        for other in page.spans:
            assert not (one.start < other.start < one.end < other.end)
