"""Text as every platform has to handle it: what is visible, how long it is, where to cut it.

Positions and lengths are in code points unless a name says otherwise. A cut never falls
inside a grapheme (an emoji with its modifiers, a letter with its marks), except where one
grapheme alone is longer than a whole part.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence

import regex

from bot.domain.message import clean
from bot.domain.reply import Button, FileOut, Reply

Size = Callable[[int, int], int]
"""The length of text[start:end] as a platform counts it: at least end - start, and never
smaller for a larger end."""

_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Cs", "Zs", "Zl", "Zp"})
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_VARIATION_SELECTORS = regex.compile(r"[\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")

_GRAPHEME = regex.compile(r"\X")
_PARAGRAPH = regex.compile(r"(?=\n[ \t]*\n)")
_LINE = regex.compile(r"(?=\n)")
_SENTENCE = regex.compile(r"""[.!?…]["'”’»)\]]*(?=\s)|[。！？]""")
_WORD = regex.compile(r"(?=\s)")


def is_blank(text: str) -> bool:
    """True when nobody can see anything in it: no text, white space, zero-width characters."""
    return all(
        unicodedata.category(char) in _INVISIBLE_CATEGORIES
        or char in _INVISIBLE
        or _VARIATION_SELECTORS.match(char) is not None
        for char in text
    )


def cleaned(reply: Reply) -> Reply:
    """The reply without what neither a database nor a platform takes."""
    buttons = (Button(clean(b.label), clean(b.data), clean(b.url)) for b in reply.buttons)
    files = (
        FileOut(f.kind, clean(f.url), clean(f.content), clean(f.name), clean(f.caption))
        for f in reply.files
    )
    return Reply(clean(reply.text), tuple(buttons), tuple(files))


def utf16_len(text: str) -> int:
    """Length in UTF-16 code units, a lone surrogate counting as one."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def split(text: str, limit: int, measure: Callable[[str], int] = len) -> list[str]:
    """Pieces of at most `limit` by `measure`, equal to `text` but for white space at the cuts.

    `measure` must give at least the number of code points. Blank pieces are left out.
    """
    return [text[a:b] for a, b in cuts(text, limit, lambda a, b: measure(text[a:b]))]


def shorten(text: str, limit: int, measure: Callable[[str], int] = len) -> str:
    """The beginning of `text` in at most `limit` by `measure`, with an ellipsis if cut."""
    if measure(text) <= limit:
        return text
    pieces = split(text, limit - 1, measure)
    return pieces[0] + "…" if pieces else ""


def cuts(
    text: str, limit: int, size: Size, whole: Sequence[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """The pieces as (start, end), none larger than `limit` by `size`.

    A paragraph's end is better than a line's, then a sentence's, then a word's. `whole` are
    ranges (code blocks) that are kept in one piece where one piece can hold them.
    """
    kept = [r for r in whole if r[1] - r[0] <= limit and size(*r) <= limit]
    found: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        reach = _reach(len(text), start, limit, size)
        end = reach if reach == len(text) else _best_cut(text, start, reach, kept)
        last = start + len(text[start:end].rstrip()) if end < len(text) else end
        if not is_blank(text[start:last]):
            found.append((start, last))
        start = _resume(text, end)
    return found


def _reach(length: int, start: int, limit: int, size: Size) -> int:
    """The furthest end that fits; at least one code point, so that every cut gets on."""
    high = min(start + limit, length)
    if size(start, high) <= limit:
        return high
    fits = bisect_right(range(start + 1, high), limit, key=lambda end: size(start, end))
    return max(start + fits, start + 1)


def _resume(text: str, end: int) -> int:
    """The next piece's start: white space is dropped, a new line's indent is kept."""
    at = end
    after_newline = end
    for grapheme in _GRAPHEME.finditer(text, end):
        if not grapheme.group().isspace():
            break
        at = grapheme.end()
        if "\n" in grapheme.group():
            after_newline = at
    return after_newline if after_newline > end and at < len(text) else at


def _best_cut(text: str, start: int, reach: int, kept: Sequence[tuple[int, int]]) -> int:
    ends = [m.end() for m in _GRAPHEME.finditer(text, start, min(reach + 1, len(text)))]
    allowed = {end for end in ends if end <= reach}
    middle = start + (reach - start) // 2
    outside = {end for end in allowed if not any(a < end < b for a, b in kept)}
    before = outside if any(a < reach < b for a, b in kept) else set()
    tries: tuple[tuple[regex.Pattern[str], int, set[int]], ...] = (
        (_PARAGRAPH, middle, outside),
        (_LINE, middle, outside),
        (_PARAGRAPH, start + 1, before),
        (_LINE, start + 1, before),
        (_SENTENCE, middle, allowed),
        (_WORD, middle, allowed),
        (_LINE, start + 1, allowed),
        (_WORD, start + 1, allowed),
    )
    for pattern, floor, positions in tries:
        matches = pattern.finditer(text, floor, min(reach + 2, len(text)))
        found = [match.end() for match in matches if match.end() in positions]
        if found:
            return found[-1]
    return max(allowed, default=reach)
