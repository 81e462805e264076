"""Styled text as Telegram takes it: plain text and entities, so that nothing is parsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from channels.markdown import Span, Style, Styled
from channels.text import utf16_len

TEXT_LIMIT = 4096
"""Telegram counts code points; UTF-16 units are never fewer, so counting them is safe."""
CAPTION_LIMIT = 1024
ENTITY_LIMIT = 100
"""Telegram shows so many of a message and ignores the rest."""

_TYPES = {
    Style.BOLD: "bold",
    Style.ITALIC: "italic",
    Style.STRIKE: "strikethrough",
    Style.CODE: "code",
    Style.PRE: "pre",
    Style.QUOTE: "blockquote",
    Style.LINK: "text_link",
}
_CODE = (Style.CODE, Style.PRE)
_FONTS = (Style.BOLD, Style.ITALIC, Style.STRIKE)


def entities(styled: Styled) -> list[dict[str, object]]:
    """MessageEntity objects; offsets and lengths in UTF-16 code units."""
    found = [_entity(styled.text, span) for span in _compatible(styled)]
    return found[:ENTITY_LIMIT]


def _entity(text: str, span: Span) -> dict[str, object]:
    offset = utf16_len(text[: span.start])
    length = utf16_len(text[span.start : span.end])
    entity: dict[str, object] = {"type": _TYPES[span.style], "offset": offset, "length": length}
    if span.style is Style.LINK:
        entity["url"] = span.value
    elif span.style is Style.PRE and span.value:
        entity["language"] = span.value
    return entity


def _compatible(styled: Styled) -> Iterator[Span]:
    """Telegram allows nothing inside code: a font stops before it, a link wins over it."""
    links = [s for s in styled.spans if s.style is Style.LINK]
    code = [s for s in styled.spans if s.style in _CODE and not _inside(s, links)]
    spans: list[Span] = []
    for span in styled.spans:
        if span.style in _FONTS:
            spans += _without(span, code)
        elif span.style not in _CODE or span in code:
            spans.append(span)
    shown = [s for s in spans if styled.text[s.start : s.end].strip()]
    yield from sorted(shown, key=lambda s: (s.start, -s.end))


def _inside(span: Span, others: Iterable[Span]) -> bool:
    return any(o.start <= span.start and span.end <= o.end for o in others)


def _without(span: Span, holes: Iterable[Span]) -> Iterator[Span]:
    start = span.start
    for hole in sorted(holes, key=lambda s: s.start):
        if hole.end <= start or hole.start >= span.end:
            continue
        if hole.start > start:
            yield replace(span, start=start, end=hole.start)
        start = hole.end
    if start < span.end:
        yield replace(span, start=start)
