"""Styled text in WhatsApp's own marks, in messages of at most 1,600.

WhatsApp knows *bold*, _italic_, ~strike~, `code`, ```blocks``` and "> " quotes. A mark works
within one line and between words only; where it would show as a stray sign it is left out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from channels.markdown import Span, Style, Styled, render
from channels.text import cuts, utf16_len

LIMIT = 1600
"""Twilio refuses a longer body (21617). Counted in UTF-16 units, the larger of the two
ways to count an emoji."""

_MARKS = {Style.BOLD: "*", Style.ITALIC: "_", Style.STRIKE: "~", Style.CODE: "`"}
_FENCE = "```"
_QUOTE = "> "


def pieces(markdown: str) -> list[str]:
    """A Markdown text as the bodies of the messages that carry it, in order."""
    return cut(render(markdown))


def cut(styled: Styled) -> list[str]:
    """The same for a text whose styles are known. Blank pieces are left out."""
    flat = _with_addresses(styled)
    ranges = cuts(flat.text, LIMIT, _Sizes(flat).of, flat.blocks())
    return [_marked(flat.clip(start, end)).strip("\n") for start, end in ranges]


def _with_addresses(styled: Styled) -> Styled:
    """Links written out: WhatsApp has no words that hide an address."""
    links = sorted((s for s in styled.spans if s.style is Style.LINK), key=lambda s: s.end)
    ends = [link.end for link in links]
    written: list[str] = []
    added = [0]
    at = 0
    for link in links:
        address = f" ({link.value})"
        written += (styled.text[at : link.end], address)
        added.append(added[-1] + len(address))
        at = link.end
    written.append(styled.text[at:])
    moved = tuple(
        replace(
            span,
            start=span.start + added[bisect_right(ends, span.start)],
            end=span.end + added[bisect_left(ends, span.end)],
        )
        for span in styled.spans
        if span.style is not Style.LINK
    )
    return Styled("".join(written), moved)


class _Sizes:
    """The lengths of pieces of a text with their marks, at most."""

    def __init__(self, styled: Styled) -> None:
        self._text = styled.text
        self._spans = styled.spans
        self._starts = [span.start for span in styled.spans]
        self._at = -1
        self._open: list[Span] = []

    def of(self, start: int, end: int) -> int:
        within = self._spans[bisect_left(self._starts, start) : bisect_left(self._starts, end)]
        marks = sum(self._marks(span, start, end) for span in (*self._reaching(start), *within))
        return utf16_len(self._text[start:end]) + marks

    def _reaching(self, start: int) -> list[Span]:
        """The spans that begin before `start` and reach over it; asked for many ends in a row."""
        if start != self._at:
            earlier = self._spans[: bisect_left(self._starts, start)]
            self._at, self._open = start, [span for span in earlier if span.end > start]
        return self._open

    def _marks(self, span: Span, start: int, end: int) -> int:
        if span.style is Style.PRE:
            return 2 * (len(_FENCE) + 1)
        return 2 * (self._text.count("\n", max(span.start, start), min(span.end, end)) + 1)


def _marked(styled: Styled) -> str:
    opens: dict[int, list[str]] = defaultdict(list)
    closes: dict[int, list[str]] = defaultdict(list)
    for place, start, end in _places(styled):
        opens[start].append(place[0])
        closes[end].insert(0, place[1])
    written: list[str] = []
    at = 0
    for position in sorted({*opens, *closes}):
        written += (styled.text[at:position], *closes[position], *opens[position])
        at = position
    return "".join((*written, styled.text[at:]))


Mark = tuple[str, str]


def _places(styled: Styled) -> Iterator[tuple[Mark, int, int]]:
    """Each pair of marks with the range that it goes around, outer ranges first."""
    blocks = styled.blocks()
    done: list[Span] = []
    for span in styled.spans:
        if span.style is Style.PRE:
            yield from _block(styled.text, span)
        elif span.style is Style.QUOTE:
            yield from _quote(styled.text, span, blocks)
        elif not any(s.style is span.style and s.start <= span.start < s.end for s in done):
            done.append(span)
            yield from _inline(styled.text, span)


def _block(text: str, span: Span) -> Iterator[tuple[Mark, int, int]]:
    content = text[span.start : span.end]
    if _FENCE in content or not content.strip():
        return
    edge = "\n" if "\n" in content else ""
    yield (_FENCE + edge, edge + _FENCE), span.start, span.end


def _quote(text: str, span: Span, blocks: list[tuple[int, int]]) -> Iterator[tuple[Mark, int, int]]:
    for start, end in _lines(text, span):
        at_line_start = start == 0 or text[start - 1] == "\n"
        in_block = any(first <= start < last for first, last in blocks)
        if at_line_start and not in_block and text[start:end].strip():
            yield (_QUOTE, ""), start, end


def _inline(text: str, span: Span) -> Iterator[tuple[Mark, int, int]]:
    mark = _MARKS[span.style]
    for line_start, line_end in _lines(text, span):
        line = text[line_start:line_end]
        content = line.strip()
        start = line_start + len(line) - len(line.lstrip())
        end = start + len(content)
        if not content or mark in content:
            continue
        within_word = text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()
        if span.style is Style.CODE or not within_word:
            yield (mark, mark), start, end


def _lines(text: str, span: Span) -> Iterator[tuple[int, int]]:
    start = span.start
    while start < span.end:
        newline = text.find("\n", start, span.end)
        end = span.end if newline < 0 else newline
        yield start, end
        start = end + 1
