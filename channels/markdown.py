"""Markdown, as models write it, into plain text with styled ranges.

Each channel turns the ranges into what its platform understands: entities or markers. No
word of the source gets lost: HTML and link definitions stay text, and what is nested too
deep for the parser is shown as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

_NESTING = 100
_LINKABLE = ("http://", "https://", "tg://")
_RULE = "———"


class Style(StrEnum):
    """The look of a range of text."""

    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    CODE = "code"
    PRE = "pre"
    QUOTE = "quote"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class Span:
    """A styled range; `start` and `end` in code points.

    `value` is the language of a `PRE` (may be empty) and the address of a `LINK`.
    """

    style: Style
    start: int
    end: int
    value: str = ""


@dataclass(frozen=True, slots=True)
class Styled:
    """Text with styles, outer ranges first. Ranges nest or stand apart, never half overlap."""

    text: str
    spans: tuple[Span, ...] = ()

    def blocks(self) -> list[tuple[int, int]]:
        """The code blocks: ranges that are better not cut."""
        return [(s.start, s.end) for s in self.spans if s.style is Style.PRE]

    def clip(self, start: int, end: int) -> Styled:
        """The piece text[start:end]; a style that goes over the cut is closed and reopened."""
        spans = tuple(
            replace(s, start=max(s.start, start) - start, end=min(s.end, end) - start)
            for s in self.spans
            if s.start < end and s.end > start
        )
        return Styled(self.text[start:end], spans)

    def written_out(self) -> str:
        """The text without styles, the address of every link behind its words."""
        text = self.text
        for span in sorted(self.spans, key=lambda s: s.end, reverse=True):
            if span.style is Style.LINK:
                text = f"{text[: span.end]} ({span.value}){text[span.end :]}"
        return text


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _NESTING})
    return parser.enable(["table", "strikethrough"]).disable(["reference", "lheading"])


def render(markdown: str) -> Styled:
    """The styled text of a Markdown source."""
    tokens = _parser().parse(markdown)
    levels = [t.level for token in tokens for t in (token, *(token.children or ()))]
    if max(levels, default=0) >= _NESTING - 1:
        return Styled(markdown)
    page = _Page(markdown.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    page.blocks(SyntaxTreeNode(tokens).children)
    return page.styled()


class _Page:
    """The text written so far. `source` (lines) gives back the blank lines between blocks."""

    def __init__(self, source: Sequence[str] = ()) -> None:
        self._source = source
        self._pieces: list[str] = []
        self._length = 0
        self._spans: list[Span] = []
        self._indents: list[str] = []
        self._indent_due = False
        self._at_block_start = True
        self._quotes = 0

    def styled(self) -> Styled:
        spans = sorted(self._spans, key=lambda s: (s.start, -s.end))
        return Styled("".join(self._pieces), tuple(spans))

    def blocks(self, nodes: Sequence[SyntaxTreeNode]) -> None:
        for node in nodes:
            if node.type not in ("bullet_list", "ordered_list"):
                self._new_block(node)
                self._block(node)
                continue
            for item in node.children:
                self._new_block(item)
                marker = f"{item.info}{item.markup} " if item.info else "• "
                self._marked(marker, " " * len(marker), item)

    def _block(self, node: SyntaxTreeNode) -> None:
        match node.type:
            case "blockquote":
                self._quote(node)
            case "heading":
                with self._styled(Style.BOLD):
                    self.inline(node.children)
            case "fence" | "code_block":
                self._fence(node)
            case "table":
                self._block_of_code(_table(node), "")
            case "hr":
                self._write(_RULE)
            case _:
                self.inline(node.children)

    def _fence(self, node: SyntaxTreeNode) -> None:
        """More than a language behind the opening fence is text that would vanish there."""
        info, content = node.info.strip(), node.content.removesuffix("\n")
        if content and len(info.split()) <= 1:
            self._block_of_code(content, info)
        else:
            self._block_of_code("\n".join(line for line in (info, content) if line), "")

    def _block_of_code(self, content: str, language: str) -> None:
        self._indent_due = False
        with self._styled(Style.PRE, language):
            self._put(content)

    def _quote(self, node: SyntaxTreeNode) -> None:
        """No platform styles a quote in a quote: the inner one keeps its `>`."""
        self._quotes += 1
        if self._quotes > 1:
            self._marked("> ", "> ", node)
        else:
            with self._styled(Style.QUOTE):
                self._marked("", "", node)
        self._quotes -= 1

    def _marked(self, marker: str, hanging: str, node: SyntaxTreeNode) -> None:
        self._write(marker)
        self._indents.append(hanging)
        self._at_block_start = True
        self.blocks(node.children)
        self._at_block_start = False
        self._indents.pop()

    def _new_block(self, node: SyntaxTreeNode) -> None:
        """A line of its own, after as many blank lines as the source has there."""
        if not self._at_block_start:
            first = line = node.map[0] if node.map else 0
            while line > 0 and not self._source[line - 1].strip(" \t>"):
                line -= 1
            self._put("\n" * (1 + first - line))
            self._indent_due = True
        self._at_block_start = False

    def inline(self, nodes: Sequence[SyntaxTreeNode]) -> None:
        for node in nodes:
            match node.type:
                case "inline":
                    self.inline(node.children)
                case "softbreak" | "hardbreak":
                    self._put("\n")
                    self._indent_due = True
                case "code_inline":
                    with self._styled(Style.CODE):
                        self._write(node.content)
                case "strong" | "em" | "s":
                    with self._styled(_EMPHASIS[node.type]):
                        self.inline(node.children)
                case "link":
                    self._link(node, str(node.attrs.get("href", "")))
                case "image":
                    self._link(node, str(node.attrs.get("src", "")))
                case _:
                    self._write(node.content)

    def _link(self, node: SyntaxTreeNode, address: str) -> None:
        first = len(self._pieces)
        with self._styled(Style.LINK, address):
            self.inline(node.children)
        shown = "".join(self._pieces[first:]).strip()
        if not shown:
            self._write(address)
        elif shown in (address, address.removeprefix("mailto:")):
            self._spans.pop()
        elif not address.startswith(_LINKABLE):
            self._spans.pop()
            self._write(f" ({address})" if address else "")

    @contextmanager
    def _styled(self, style: Style, value: str = "") -> Iterator[None]:
        self._indent()
        start = self._length
        yield
        if self._length > start:
            self._spans.append(Span(style, start, self._length, value))

    def _write(self, text: str) -> None:
        if text:
            self._indent()
            self._put(text)

    def _indent(self) -> None:
        if self._indent_due:
            self._indent_due = False
            self._put("".join(self._indents))

    def _put(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)


_EMPHASIS = {"strong": Style.BOLD, "em": Style.ITALIC, "s": Style.STRIKE}


def _table(node: SyntaxTreeNode) -> str:
    """Columns padded to one width, a rule under the head."""
    lines_of_cells = [row for part in node.children for row in part.children]
    rows = [[_cell(cell) for cell in row.children] for row in lines_of_cells]
    count = max(len(row) for row in rows)
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(count)]
    lines = [" | ".join(c.ljust(w) for c, w in zip(row, widths, strict=False)) for row in rows]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def _cell(node: SyntaxTreeNode) -> str:
    page = _Page()
    page.inline(node.children)
    return page.styled().written_out()
