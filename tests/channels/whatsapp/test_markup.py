"""Markdown becomes WhatsApp's own marks, in messages that Twilio takes, with no word lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.markdown import render
from channels.text import utf16_len
from channels.whatsapp.compose import LIMIT, pieces

MARKED = [
    ("plain words", "plain words"),
    ("**bold** and *italic* and ~~gone~~", "*bold* and _italic_ and ~gone~"),
    ("***both***", "*_both_*"),
    ("# Title **with** weight", "*Title with weight*"),
    ("run `ls -l` now", "run `ls -l` now"),
    ("```py\nx = 1\ny = 2\n```", "```\nx = 1\ny = 2\n```"),
    ("```\none line\n```", "```one line```"),
    ("- a\n- b\n  - c", "• a\n• b\n  • c"),
    ("3. c\n4. d", "3. c\n4. d"),
    ("> a **b**\n> c", "> a *b*\n> c"),
    ("[the site](https://x.example/a_b)", "the site (https://x.example/a_b)"),
    ("see <https://x.example> now", "see https://x.example now"),
    ("![a cat](https://x.example/c.png)", "a cat (https://x.example/c.png)"),
    ("**[bold link](https://x.example)** after", "*bold link* (https://x.example) after"),
    ("**two\nlines**", "*two*\n*lines*"),
    ("in**cred**ible", "incredible"),
    ("**a\\*b** c", "a*b c"),
    ("use `` a`b `` here", "use a`b here"),
    ("2 * 3 * 4 = 24", "2 * 3 * 4 = 24"),
    ("snake_case_name", "snake_case_name"),
    ("<b>html</b> &amp; more", "<b>html</b> & more"),
]


@pytest.mark.parametrize(("markdown", "shown"), MARKED)
def test_markdown_becomes_whatsapps_own_marks(markdown: str, shown: str) -> None:
    assert pieces(markdown) == [shown]


@pytest.mark.parametrize("text", ["", " \n ", "\u200b\u200d\ufeff"])
def test_what_nobody_can_see_is_no_message(text: str) -> None:
    assert pieces(text) == []


def test_b33_1601_characters_are_two_messages_and_a_long_word_is_cut() -> None:
    first = pieces("word " * 320 + "w")
    assert len(first) == 2
    second_source = "a" * 800 + " " + "x" * 1700 + " " + "b" * 798
    second = pieces(second_source)
    assert len(second_source) == 3300
    assert len(second) >= 3
    assert "".join(second).replace(" ", "") == second_source.replace(" ", "")
    assert all(utf16_len(p) <= LIMIT for p in [*first, *second])


def test_a_message_that_just_fits_stays_whole() -> None:
    assert pieces("a" * LIMIT) == ["a" * LIMIT]
    assert pieces(f"**{'a' * (LIMIT - 2)}**") == [f"*{'a' * (LIMIT - 2)}*"]


def test_marks_are_closed_at_a_cut_and_opened_again() -> None:
    bold = pieces(f"**{'word ' * 500}end**")
    assert len(bold) == 2
    assert all(p.startswith("*word") and p.endswith("*") for p in bold)
    code = pieces("```\n" + "line of code\n" * 300 + "```")
    assert len(code) > 2
    assert all(p.startswith("```\n") and p.endswith("\n```") for p in code)
    quote = pieces("\n".join(f"> said {n}" for n in range(400)))
    assert all(line.startswith("> said") for p in quote for line in p.split("\n"))


def test_an_emoji_is_counted_as_twilio_may_count_it_and_never_halved() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    found = pieces(family * 400)
    assert all(utf16_len(p) <= LIMIT for p in found)
    assert all(p == family * (len(p) // len(family)) for p in found)


def test_a_short_code_block_is_not_cut() -> None:
    block = "```\n" + "x = 1\n" * 100 + "```"
    found = pieces("word " * 250 + "\n\n" + block)
    assert found[-1] == block


ALPHABET = "ab \n*_~`>#-[]()!|\\.1ä\U0001f600"
markdownish = st.text(st.sampled_from(ALPHABET), max_size=400)
long_markdown = st.lists(markdownish, min_size=1, max_size=12).map("xyz ".join)


def letters(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


@given(markdown=long_markdown)
def test_no_word_is_lost_and_every_message_fits(markdown: str) -> None:
    found = pieces(markdown)
    assert all(0 < utf16_len(p) <= LIMIT for p in found)
    assert letters("".join(found)) == letters(render(markdown).written_out())


@given(text=st.text(st.characters(categories=("L", "N", "Zs", "So")), max_size=6000))
def test_plain_text_arrives_as_it_was_but_for_space_at_the_cuts(text: str) -> None:
    found = pieces(text)
    assert all(utf16_len(p) <= LIMIT for p in found)
    assert letters("".join(found)) == letters(text)


@given(text=st.text(st.characters(), max_size=300))
def test_any_text_can_be_shown(text: str) -> None:
    assert all(utf16_len(p) <= LIMIT for p in pieces(text))
