"""Text as every platform has to handle it: visibility, length, and places to cut it.

Positions and lengths are in code points unless a name says otherwise. A cut never falls
inside a grapheme (an emoji with its modifiers, a letter with its marks), except where one
grapheme alone is longer than a whole part.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

import regex

from bot.domain.message import clean
from bot.domain.reply import Button, FileOut, Reply

Size = Callable[[int, int], int]
"""The length of text[start:end] as a platform counts it: at least end - start, and never
smaller for a larger end."""

_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Cs", "Zs", "Zl", "Zp"})
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_VARIATION_SELECTORS = regex.compile(r"[\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")

_WIDE = regex.compile(r"[\p{EA=W}\p{EA=F}]|.\ufe0f")
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


def columns(text: str) -> int:
    """Width in a font of one width, where East Asian characters and emoji take two."""
    return sum(1 + (_WIDE.match(m.group()) is not None) for m in _GRAPHEME.finditer(text))


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


def sizes(text: str, costs: Iterable[tuple[int, int, int]] = ()) -> Size:
    """UTF-16 length, and for every range (start, end, cost) that a piece touches its cost."""
    units = [0, *accumulate(1 + (char > "\uffff") for char in text)]
    added = touched(len(text), costs)
    return lambda start, end: units[end] - units[start] + added(start, end)


def touched(length: int, costs: Iterable[tuple[int, int, int]]) -> Size:
    """The cost of all ranges (start, end, cost) that a piece of a text of this length touches."""
    opened, closed = [0] * (length + 1), [0] * (length + 1)
    for start, end, cost in costs:
        opened[start + 1] += cost
        closed[end] += cost
    opened, closed = list(accumulate(opened)), list(accumulate(closed))
    return lambda start, end: opened[end] - closed[start]


Block = tuple[int, int]
"""A block of code: kept in one piece where one piece can hold it, and cut at lines if not."""


def cuts(text: str, limit: int, size: Size, blocks: Sequence[Block] = ()) -> list[tuple[int, int]]:
    """The pieces as (start, end), none larger than `limit` by `size`.

    A paragraph's end is better than a line's, then a sentence's, then a word's. White space is
    dropped at a cut between words; in a block of code only the line break at the cut is.
    """
    found: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        reach = _reach(len(text), start, limit, size)
        near = [block for block in blocks if block[0] < reach and block[1] > start]
        end = reach if reach == len(text) else _best_cut(text, start, reach, limit, size, near)
        if end == len(text):
            last = following = end
        elif any(a < end < b for a, b in near):
            last, following = end, end + (text[end] == "\n")
        else:
            code_end = max((b for _, b in near if b <= end), default=start)
            last = max(start + len(text[start:end].rstrip()), code_end)
            following = min([_resume(text, end), *(a for a, _ in blocks if a >= end)])
        if not is_blank(text[start:last]):
            found.append((start, last))
        start = following
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


def _best_cut(
    text: str, start: int, reach: int, limit: int, size: Size, blocks: Sequence[Block]
) -> int:
    ends = [m.end() for m in _GRAPHEME.finditer(text, start, min(reach + 1, len(text)))]
    allowed = {end for end in ends if end <= reach}
    prose = {end for end in allowed if not any(a < end < b for a, b in blocks)}
    middle = start + (reach - start) // 2
    tries = [
        (_PARAGRAPH, middle, prose),
        (_LINE, middle, prose),
        (_SENTENCE, middle, prose),
        (_WORD, middle, prose),
        (_LINE, start + 1, prose),
        (_WORD, start + 1, prose),
    ]
    for a, b in blocks:
        if a < reach < b:
            lines = (_LINE, _code_floor(text, max(a, start), reach, limit, size), allowed)
            before = [(_PARAGRAPH, start + 1, prose), (_LINE, start + 1, prose)]
            tries = before if size(a, b) <= limit else [lines, *before]
    for pattern, floor, positions in tries:
        matches = pattern.finditer(text, floor, min(reach + 2, len(text)))
        found = [match.end() for match in matches if match.end() in positions]
        if found:
            return found[-1]
    return max(allowed, default=reach)


def _code_floor(text: str, start: int, reach: int, limit: int, size: Size) -> int:
    """The first place in a block for a cut: where the line at `reach` is longer than a piece,
    the second half of this piece, so that no scrap of the block goes alone."""
    line = text.rfind("\n", start, reach) + 1 or start
    line_end = text.find("\n", reach)
    whole = size(line, line_end if line_end > 0 else len(text)) <= limit
    return start + 1 if whole else start + (reach - start) // 2
