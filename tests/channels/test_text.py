"""Splitting and visibility, on which every channel relies."""

from __future__ import annotations

import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.text import cuts, is_blank, shorten, split, utf16_len

FAMILY = "👨‍👩‍👧‍👦"
ODD = st.sampled_from(
    [
        *(" ", "\n", "\n\n", "\r\n", ". ", "。", "\t", "e\u0301", FAMILY, "👍🏽", "🇩🇪", "क्षि"),
        *("\u200b", "a", "word", "x" * 30),
    ]
)
TEXTS = st.lists(st.one_of(ODD, st.text(max_size=8)), max_size=60).map("".join)


def visible(text: str) -> str:
    return "".join(c for c in text if not c.isspace() and not is_blank(c))


def graphemes(text: str) -> list[str]:
    return [g for g in regex.findall(r"\X", text) if not g.isspace()]


@given(TEXTS, st.integers(min_value=20, max_value=90))
def test_pieces_fit_and_joined_equal_the_text_but_for_white_space_at_the_cuts(
    text: str, limit: int
) -> None:
    pieces = split(text, limit, utf16_len)
    assert all(0 < utf16_len(piece) <= limit for piece in pieces)
    assert visible("".join(pieces)) == visible(text)


@given(TEXTS, st.integers(min_value=20, max_value=90))
def test_what_lies_between_two_pieces_is_white_space_or_invisible(text: str, limit: int) -> None:
    places = cuts(text, limit, lambda a, b: b - a)
    edges = [0, *(edge for place in places for edge in place), len(text)]
    assert edges == sorted(edges)
    assert all(is_blank(text[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True))


@settings(max_examples=300)
@given(st.lists(ODD, max_size=60).map("".join), st.integers(min_value=30, max_value=90))
def test_no_grapheme_is_cut_in_two(text: str, limit: int) -> None:
    whole = graphemes(text)
    pieces = split(text, limit, utf16_len)
    cut = [g for piece in pieces for g in graphemes(piece)]
    assert [g for g in cut if not is_blank(g)] == [g for g in whole if not is_blank(g)]


@given(st.text(max_size=300), st.integers(min_value=2, max_value=9))
def test_splitting_ends_and_fits_even_when_a_grapheme_is_longer_than_a_part(
    text: str, limit: int
) -> None:
    pieces = split("e" + "\u0301" * 40 + text, limit, utf16_len)
    assert all(utf16_len(piece) <= limit for piece in pieces)


def test_a_paragraph_is_preferred_to_a_line_to_a_sentence_to_a_word() -> None:
    assert split("one two word\n\nthree\nfour five", 20) == ["one two word", "three\nfour five"]
    assert split("one two three\nfour five", 18) == ["one two three", "four five"]
    assert split("One two three. Four five", 18) == ["One two three.", "Four five"]
    assert split("one two three four five", 18) == ["one two three four", "five"]


def test_a_text_that_fits_is_left_as_it_is() -> None:
    assert split("  kept \n", 20) == ["  kept \n"]
    assert split("", 20) == []


def test_the_indent_of_a_line_survives_a_cut_before_it() -> None:
    assert split("def long_name():\n    return 1", 20) == ["def long_name():", "    return 1"]


def test_a_code_block_that_fits_in_one_piece_is_not_cut() -> None:
    text = "intro line\nmore\n" + "code\n" * 5 + "end"
    block = (16, 40)
    pieces = [text[a:b] for a, b in cuts(text, 30, lambda a, b: b - a, [block])]
    assert pieces == ["intro line\nmore", "code\n" * 4 + "code\nend"]


def test_emoji_count_double_in_utf16_and_are_never_halved() -> None:
    pieces = split("😀" * 5000, 4096, utf16_len)
    assert [len(p) for p in pieces] == [2048, 2048, 904]


def test_zero_width_characters_are_blank_and_letters_are_not() -> None:
    assert is_blank("\u200b\u200d\ufeff \n\u2800\u3164\ufe0f")
    assert not is_blank("\u200b.")


def test_shortening_cuts_at_a_word_and_says_so() -> None:
    assert shorten("short", 10) == "short"
    assert shorten("several words here", 15) == "several words…"
