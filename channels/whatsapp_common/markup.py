"""Styled text in WhatsApp's own marks, in messages of limited length.

WhatsApp knows *bold*, _italic_, ~strike~, `code`, ```blocks``` and "> " quotes. A mark works
within one line and between words only; where it would show as a stray sign it is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import regex

from channels.markdown import Span, Style, Styled, render
from channels.text import cuts, sizes

_MARKS = {Style.BOLD: "*", Style.ITALIC: "_", Style.STRIKE: "~", Style.CODE: "`"}
_CODE = (Style.CODE, Style.PRE)
_WOULD_BE_MARKED = regex.compile(
    r"""(?<!\S) ["'(“«]*+ (?!\S*(?:://|www\.|[<>]))
        ( \S*? (?<![^\W_])([*_~]) (?:(?!\2)\S)+ \2(?![^\W_]) \S*? ) ["'.,:;!?)”»…]*+ (?!\S)""",
    regex.VERBOSE,
)
_FENCE = "```"
_QUOTE = "> "


def pieces(markdown: str, limit: int) -> list[str]:
    """A Markdown text as the bodies of the messages that carry it, in order. `limit` is in UTF-16
    units, the larger of the two ways to count an emoji."""
    return cut(render(markdown), limit)


def cut(styled: Styled, limit: int) -> list[str]:
    """The same for a text whose styles are known. Blank pieces are left out."""
    flat = _guarded(styled.flat())
    ranges = cuts(flat.text, limit, sizes(flat.text, _costs(flat)), flat.blocks())
    return [_marked(flat.clip(start, end)).strip("\n") for start, end in ranges]


def literal(text: str) -> str:
    """Words that are no Markdown, such as a label or a file's name, so that each sign is seen."""
    return _marked(_guarded(Styled(text)))


def titled(name: str, content: str) -> Styled:
    """A text file as words: its name, and what is in it as a block."""
    start = len(name) + 1
    spans = Span(Style.BOLD, 0, len(name)), Span(Style.PRE, start, start + len(content))
    return Styled(f"{name}\n{content}", spans)


def _guarded(styled: Styled) -> Styled:
    """With words such as `__init__.py` as code, whose signs WhatsApp would take for marks."""
    spans = list(styled.spans)
    for word in _WOULD_BE_MARKED.finditer(styled.text):
        start, end = word.span(1)
        near = [s for s in styled.spans if s.start < end and start < s.end]
        if all(s.start <= start and end <= s.end and s.style not in _CODE for s in near):
            spans.append(Span(Style.CODE, start, end))
    return Styled(styled.text, tuple(sorted(spans, key=lambda s: (s.start, -s.end))))


def _costs(styled: Styled) -> Iterator[tuple[int, int, int]]:
    """The marks that a piece may need, for its size."""
    for span in styled.spans:
        if span.style is Style.PRE:
            yield span.start, span.end, 2 * (len(_FENCE) + 1)
        else:
            for start, end in _lines(styled.text, span):
                yield start, end, 2


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
    for span in sorted(styled.spans, key=lambda s: (s.start, -s.end, s.style is Style.CODE)):
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
