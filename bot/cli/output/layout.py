"""Laying out records for a width: as a table if that fits without breaking a word, else as one card
for each.

Widths are columns of a terminal: a Chinese character or an emoji takes two, a combining mark none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import zip_longest
from typing import assert_never

from bot.lazy_imports import lazy_imports
from bot.operations.reports.phrases import safe

with lazy_imports(__name__):
    from rich.cells import cell_len, chop_cells

GAP = "  "
_READABLE = 24
"""The least columns for prose in a table, unless the prose is shorter."""
_INDENT = "    "
_QUOTE = "> "
_STYLES = {
    "done": "green",
    "ok": "green",
    "warning": "yellow",
    "too late": "yellow",
    "refused": "red",
    "problem": "red",
}


class Slot(Enum):
    """The place of a column's values in a card, and the way in which they may be broken."""

    NUMBER = auto()
    """In the title, at its beginning, behind the column's name."""
    TITLE = auto()
    """In the title, without the column's name."""
    FACT = auto()
    """With the column's name, on a line with other facts; never broken."""
    PROSE = auto()
    """With the column's name, on lines of its own, broken between words."""
    WORDS = auto()
    """Like prose, of several lines; the pieces of a broken quoted line are marked as quoted too."""
    COMMAND = auto()
    """Like prose, but the command stays whole; the text behind its ` # ` explains it."""


_BROKEN = (Slot.PROSE, Slot.WORDS, Slot.COMMAND)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, and its slot in a card."""

    name: str
    slot: Slot = Slot.FACT


def quoted(text: str) -> str:
    """Somebody's words with each line marked, so that none can pass for ours."""
    return "\n".join(_QUOTE + line for line in text.split("\n")) if text else ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line as pieces, each with its style, so that output to a pipe, without colours, needs no
    rich."""

    pieces: tuple[tuple[str, str], ...] = ()

    @property
    def plain(self) -> str:
        """The line without its styles."""
        return "".join(text for text, _ in self.pieces)


def styled(text: str, style: str = "") -> Line:
    """A line in one style."""
    return Line(((text, style),) if text else ())


@dataclass(frozen=True, slots=True)
class _Cell:
    column: Column
    value: str

    @property
    def lines(self) -> list[str]:
        """The lines of the value before any of them is broken."""
        match self.column.slot:
            case Slot.NUMBER | Slot.TITLE | Slot.FACT | Slot.PROSE:
                return [safe(self.value)]
            case Slot.WORDS:
                return [safe(line.expandtabs(4)) for line in self.value.split("\n")]
            case Slot.COMMAND:
                return [safe(part) for part in self.value.split("  # ", 1)]
            case other:
                assert_never(other)

    @property
    def natural(self) -> int:
        """The least width at which nothing is broken."""
        return max(map(cell_len, self.lines))

    @property
    def least(self) -> int:
        """The least width at which this is readable in a table."""
        match self.column.slot:
            case Slot.NUMBER | Slot.TITLE | Slot.FACT:
                return self.natural
            case Slot.PROSE | Slot.WORDS:
                return min(self.natural, _READABLE)
            case Slot.COMMAND:
                return max(cell_len(self.lines[0]), min(self.natural, _READABLE))
            case other:
                assert_never(other)

    def wrapped(self, width: int) -> list[str]:
        """The lines, broken for this width."""
        if self.column.slot not in _BROKEN:
            return self.lines
        if self.column.slot is Slot.COMMAND:
            return [self.lines[0], *wrap(self.lines[1:], width)]
        return wrap(self.lines, width)


def wrap(lines: Sequence[str], width: int) -> list[str]:
    """The lines, broken between words. A word that is longer than the width stays whole, since it
    can still be copied when the terminal breaks it; wide script is broken between characters."""
    return [piece for line in lines for piece in _wrapped(line, width)]


def _wrapped(line: str, width: int) -> Iterator[str]:
    if cell_len(line) <= width:
        yield line
        return
    mark = _QUOTE if line.startswith(_QUOTE) else ""
    told = ""
    for word in line.removeprefix(mark).split(" "):
        for piece in _pieces(word, width - len(mark)):
            longer = f"{told} {piece}" if told else piece
            if told and cell_len(longer) > width - len(mark):
                yield mark + told
                told = piece
            else:
                told = longer
    yield mark + told


def _pieces(word: str, width: int) -> Sequence[str]:
    wide = cell_len(word) > max(width, len(word))
    return chop_cells(word, width) if wide else [word]


def laid_out(
    columns: Sequence[Column], rows: Sequence[Sequence[object]], width: int | None
) -> list[Line]:
    """Rows as lines for a terminal of this width, without empty columns. The width None stands for
    a pipe, which gets every column."""
    cells = [[_cell(c, value) for c, value in zip(columns, row, strict=True)] for row in rows]
    if width is None:
        return _piped(columns, cells)
    told = [at for at in range(len(columns)) if any(row[at].value for row in cells)]
    columns, cells = [columns[at] for at in told], [[row[at] for at in told] for row in cells]
    widths = _widths(columns, cells, width)
    return _cards(cells, width) if widths is None else _table(columns, cells, widths)


def labelled(column: Column, value: str, width: int | None) -> list[Line]:
    """One value behind its column's name, as in a card but not indented."""
    if width is None:
        return [styled(safe(f"{column.name}: {value}"))]
    return list(_on_its_own(_Cell(column, value), width, ""))


def facts(told: Sequence[str], width: int) -> list[str]:
    """Short facts side by side, as many on a line as fit without being broken."""
    lines: list[str] = []
    for fact in told:
        if lines and cell_len(lines[-1]) + len(GAP) + cell_len(fact) <= width:
            lines[-1] += GAP + fact
        else:
            lines.append(fact)
    return lines


def _cell(column: Column, value: object) -> _Cell:
    return _Cell(column, "" if value is None else str(value))


def _piped(columns: Sequence[Column], cells: Sequence[Sequence[_Cell]]) -> list[Line]:
    """One line for each row, however long: for programs that read lines."""
    rows = [[c.name for c in columns]]
    rows += [[safe(cell.value.replace("\n", "\\n")) for cell in row] for row in cells]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return [_joined([(text, "") for text in row], widths) for row in rows]


def _widths(
    columns: Sequence[Column], cells: Sequence[Sequence[_Cell]], width: int
) -> list[int] | None:
    """The columns' widths in a table; None if it does not fit."""
    names = [cell_len(column.name) for column in columns]
    given, natural = (
        [max([name, *widths]) for name, widths in zip(names, told, strict=True)]
        for told in (
            [[row[at].least for row in cells] for at in range(len(columns))],
            [[row[at].natural for row in cells] for at in range(len(columns))],
        )
    )
    left = width - len(GAP) * (len(columns) - 1) - sum(given)
    if left < 0:
        return None
    narrow = sorted((n - g, at) for at, (n, g) in enumerate(zip(natural, given, strict=True)))
    for others, (lacks, at) in zip(range(len(narrow), 0, -1), narrow, strict=True):
        more = min(lacks, left // others)
        given[at], left = given[at] + more, left - more
    hidden = (
        cell_len(line) > given[at]
        for row in cells
        for at in range(len(columns) - 1)
        for line in row[at].wrapped(given[at])
    )
    return None if any(hidden) else given


def _table(
    columns: Sequence[Column], cells: Sequence[Sequence[_Cell]], widths: Sequence[int]
) -> list[Line]:
    lines = [_joined([(column.name, "bold") for column in columns], widths)]
    for row in cells:
        *drawn, last = (cell.wrapped(width) for cell, width in zip(row, widths, strict=True))
        if cell_len(last[0]) > widths[-1]:
            last = ["", *last]
        lines += [
            _joined([(text, _STYLES.get(text, "")) for text in line], widths)
            for line in zip_longest(*drawn, last, fillvalue="")
        ]
    return lines


def _joined(texts: Sequence[tuple[str, str]], widths: Sequence[int]) -> Line:
    """One line of a table. A word that is too long for the last column begins further to the left
    if there is room, so that it ends where the table ends."""
    pieces: list[tuple[str, str]] = []
    blank = ""
    for (text, style), width in zip(texts, widths, strict=True):
        if text:
            pieces += [(blank, ""), (text, style)] if blank else [(text, style)]
            blank = ""
        blank += " " * (width - cell_len(text)) + GAP
    if pieces:
        pieces[-1] = (pieces[-1][0].rstrip(), pieces[-1][1])
    return _moved_left(Line(tuple(pieces)), sum(widths) + len(GAP) * (len(widths) - 1))


def _moved_left(line: Line, width: int) -> Line:
    """The line, moved to the left as far as its indentation allows if it is wider than `width`."""
    beyond = cell_len(line.plain) - width
    if beyond <= 0:
        return line
    first, *more = line.pieces
    bare = first[0].lstrip(" ")
    moved = first[0][min(beyond, len(first[0]) - len(bare)) :]
    return Line(((moved, first[1]), *more))


def _cards(cells: Sequence[Sequence[_Cell]], width: int) -> list[Line]:
    return [line for row in cells for line in _card([c for c in row if c.value], width)]


def _card(row: Sequence[_Cell], width: int) -> Iterator[Line]:
    title = [_in_title(cell) for cell in row if cell.column.slot in (Slot.NUMBER, Slot.TITLE)]
    for at, text in enumerate(facts(title, width - len(_INDENT))):
        yield styled((_INDENT if at else "") + text, "bold")
    named = [
        f"{cell.column.name}: {cell.lines[0]}" for cell in row if cell.column.slot is Slot.FACT
    ]
    yield from (styled(_INDENT + text) for text in facts(named, width - len(_INDENT)))
    for cell in row:
        if cell.column.slot in _BROKEN:
            yield from _on_its_own(cell, width, _INDENT)


def _in_title(cell: _Cell) -> str:
    name = f"{cell.column.name} " if cell.column.slot is Slot.NUMBER else ""
    return name + cell.lines[0]


def _on_its_own(cell: _Cell, width: int, indent: str) -> Iterator[Line]:
    name = f"{cell.column.name}: "
    below = indent + " " * cell_len(name)
    first, *more = cell.wrapped(width - len(below))
    if cell_len(below + first) > width and cell.column.slot is not Slot.COMMAND:
        first, more = "", [first, *more]
    yield styled((indent + name + first).rstrip())
    yield from (_moved_left(styled(below + text), width) for text in more)
