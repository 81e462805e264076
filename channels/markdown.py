"""Markdown, as models write it, into plain text with styled ranges.

Each channel turns the ranges into what its platform understands: entities or markers. No
word of the source gets lost: HTML and link definitions stay text, and what is nested too
deep for the parser is shown as it was written.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum

import regex
from markdown_it.tree import SyntaxTreeNode

from channels.syntax import NESTING, parser
from channels.text import columns, is_blank

_RULE = "———"
_TABLE_WIDTH = 48
"""Columns of a table that a phone still shows in one line; a wider one is shown row by row."""
_LINKABLE = regex.compile(r"(?i)https?://[^\s/?#]*\.[^\s/?#]\S*|tg://\S+")
_ADDRESS_LIMIT = 1000
"""A longer address is written out: what holds it may have to be cut."""


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

    def flat(self) -> Styled:
        """The same without links: the address of each stands behind its words."""
        links = sorted((s for s in self.spans if s.style is Style.LINK), key=lambda s: s.end)
        ends = [link.end for link in links]
        written: list[str] = []
        added, at = [0], 0
        for link in links:
            address = f" ({link.value})"
            written += (self.text[at : link.end], address)
            added.append(added[-1] + len(address))
            at = link.end
        moved = tuple(
            replace(
                span,
                start=span.start + added[bisect_right(ends, span.start)],
                end=span.end + added[bisect_left(ends, span.end)],
            )
            for span in self.spans
            if span.style is not Style.LINK
        )
        return Styled("".join((*written, self.text[at:])), moved)

    def written_out(self) -> str:
        """The text without styles, the address of every link behind its words."""
        return self.flat().text


def render(markdown: str) -> Styled:
    """The styled text of a Markdown source."""
    tokens = parser().parse(markdown)
    levels = [t.level for token in tokens for t in (token, *(token.children or ()))]
    if max(levels, default=0) >= NESTING - 1:
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
        self._links = 0

    def styled(self) -> Styled:
        spans = sorted(self._spans, key=lambda s: (s.start, -s.end))
        return Styled("".join(self._pieces), tuple(spans))

    def blocks(self, nodes: Sequence[SyntaxTreeNode]) -> None:
        for node in nodes:
            for block in node.children if node.type.endswith("_list") else (node,):
                self._new_block(block)
                before = self._length
                self._block(block)
                if self._length == before:  # a mark around nothing
                    self._write(block.markup)

    def _lines(self, node: SyntaxTreeNode) -> Sequence[str]:
        return self._source[slice(*(node.map or (0, 0)))]

    def _block(self, node: SyntaxTreeNode) -> None:
        match node.type:
            case "list_item":
                marker = f"{node.info}{node.markup} " if node.info else "• "
                self._marked(marker, " " * len(marker), node)
            case "blockquote":
                self._quote(node)
            case "heading":
                with self._styled(Style.BOLD):
                    self.inline(node.children)
            case "fence" | "code_block":
                self._fence(node)
            case "formula":
                self._block_of_code(node.content, "")
            case "table":
                self._table(node)
            case "hr":
                self._write(_RULE)
            case _:
                self.inline(node.children)

    def _fence(self, node: SyntaxTreeNode) -> None:
        """Move words behind an opening fence that name no language to a line of their own, where
        they are seen."""
        info, content = node.info.strip(), node.content.removesuffix("\n")
        if content and _LANGUAGE.fullmatch(info):
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

    def _table(self, node: SyntaxTreeNode) -> None:
        """A grid as a block of code, or a line for each row of a wide one. Where a row has more
        cells than the head, the parser drops them: such a table stands as it was written."""
        rows = [row for part in node.children for row in part.children]
        lines = self._lines(node)
        if any(len(_PIPE.findall(line)) >= len(rows[0].children) for line in lines[2:]):
            self._block_of_code("\n".join(lines), "")
        elif max(map(columns, grid := _grid(rows))) <= _TABLE_WIDTH:
            self._block_of_code("\n".join(grid), "")
        else:
            for number, row in enumerate(rows):
                if number:
                    self._break()
                with self._styled(Style.BOLD) if number == 0 else nullcontext():
                    self._row(row.children)

    def _row(self, cells: Sequence[SyntaxTreeNode]) -> None:
        for number, cell in enumerate(cells):
            self._write(" | " if number else "")
            self.inline(cell.children)

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
            self._put("\n" * (first - line))
            self._break()
        self._at_block_start = False

    def inline(self, nodes: Sequence[SyntaxTreeNode]) -> None:
        for node in nodes:
            match node.type:
                case "inline":
                    self.inline(node.children)
                case "softbreak" | "hardbreak":
                    self._break()
                case "code_inline":
                    with self._styled(Style.CODE):
                        self._write(node.content)
                case "strong" | "em" | "s":
                    with self._styled(_EMPHASIS[node.type]):
                        self.inline(node.children)
                case "link":
                    self._link(node, str(node.attrs.get("href", "")), "[")
                case "image":
                    self._link(node, str(node.attrs.get("src", "")), "![")
                case _:
                    self._write(node.content)

    def _link(self, node: SyntaxTreeNode, address: str, opening: str) -> None:
        """Words with an address; code like `handlers[name](event)` stays as it was written."""
        linkable = _LINKABLE.fullmatch(address) is not None and len(address) <= _ADDRESS_LIMIT
        title = str(node.attrs.get("title", ""))
        glued = bool(self._pieces) and _GLUED.search(self._pieces[-1]) is not None
        if not address or (glued and not linkable):
            self._write(opening)
            self.inline(node.children)
            self._write(f']({address} "{title}")' if title else f"]({address})")
            return
        first, styled = len(self._pieces), len(self._spans)
        self._links += 1
        with self._styled(Style.LINK, address):
            self.inline(node.children)
        self._links -= 1
        shown = "".join(self._pieces[first:]).strip()
        if is_blank(shown):
            del self._spans[styled:]
            self._write(address)
        elif shown in (address, address.removeprefix("mailto:")):
            self._spans.pop()
        elif not linkable or self._links:
            self._spans.pop()
            self._write(f" ({address})")
        self._write(f' ("{title}")' if title else "")

    @contextmanager
    def _styled(self, style: Style, value: str = "") -> Iterator[None]:
        self._indent()
        start = self._length
        yield
        if self._length > start:
            self._spans.append(Span(style, start, self._length, value))

    def _break(self) -> None:
        self._put("\n")
        self._indent_due = True

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
_LANGUAGE = regex.compile(r"(?:[A-Za-z][A-Za-z0-9+#-]*)?")
_GLUED = regex.compile(r"[\w)\]]\Z")
_PIPE = regex.compile(r"(?<!^[\s>]*)(?<!\\)\|(?!\s*$)")
"""Between two cells of a row."""


def _grid(rows: Sequence[SyntaxTreeNode]) -> list[str]:
    """Columns padded to one width, a rule under the head."""
    cells = [[_cell(cell) for cell in row.children] for row in rows]
    widths = [max(map(columns, column)) for column in zip(*cells, strict=True)]
    lines = [
        " | ".join(
            cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)
        )
        for row in cells
    ]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return [line.rstrip() for line in lines]


def _cell(node: SyntaxTreeNode) -> str:
    page = _Page()
    page.inline(node.children)
    return page.styled().written_out()
