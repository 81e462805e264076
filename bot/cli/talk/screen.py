"""The terminal as a screen: lines appear above the prompt, and text being typed stays in place."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from rich.cells import set_cell_size
from rich.console import Console
from rich.text import Text

from bot.cli.talk.terminal import ANSWER, PROMPT, Write, write
from bot.operations.reports.phrases import safe

_NARROW = 20
"""Columns below which no line is put above the prompt."""
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_BOLD, _CYAN, _GREEN = "1", "36", "1;32"


class Screen:
    """A terminal whose cursor we can move."""

    lasting = True

    def __init__(self, write: Write, size: Callable[[], tuple[int, int]], *, colored: bool) -> None:
        self._write = write
        self._size = size
        self._colored = colored
        self._console = Console(file=None, color_system=None)
        self._last = False
        """True while the line above the prompt is one that the next may replace."""
        self._lost = False
        """True when the prompt may no longer be on the cursor's line."""

    def welcome(self, runs: Sequence[str], hints: Sequence[str]) -> None:
        rows = [row for line in (*runs, *hints) for row in self._wrapped(line)]
        self._write("".join(f"{row}\n" for row in rows) + self._prompt)

    def entered(self) -> None:
        self._last = self._lost = False
        # Written from the left edge, the prompt may cover a little of what was typed ahead, but
        # never appears twice.
        self._write(f"\r{self._prompt}")

    def left(self) -> None:
        self._last = False
        self._write("\n")

    def answer(self, text: str) -> None:
        self._last = False
        first, *others = self._wrapped(ANSWER + safe(text, lines=True))
        rows = [self._style(_GREEN, ANSWER) + first.removeprefix(ANSWER), *others]
        self._insert(rows)

    def tell(self, text: str) -> None:
        self._line(text)
        self._last = False

    def show(self, name: str, text: str) -> None:
        self._line(text)
        self._last = True

    def disturbed(self) -> None:
        self._last, self._lost = False, True

    @property
    def _prompt(self) -> str:
        return self._style(_BOLD, PROMPT)

    def _line(self, text: str) -> None:
        """Show a line above the prompt. It is cut to one row, so that the next can replace it."""
        columns, _ = self._size()
        line = safe(text)
        if Text(line).cell_len >= columns:
            line = set_cell_size(line, max(1, columns - 5)).rstrip() + " ..."
        row = self._style(_CYAN, line)
        if self._last:
            self._write(f"{_SAVE}\x1b[A\r\x1b[2K{row}{_RESTORE}")
        else:
            self._insert([row])

    def _insert(self, rows: Sequence[str]) -> None:
        """Insert rows above the prompt, and push the prompt down with the text typed in it."""
        columns, lines = self._size()
        high = len(rows)
        if self._lost or high > lines - 2 or columns < _NARROW:
            self._lost = False
            self._write("\r\x1b[2K" + "\n".join(rows) + f"\n{self._prompt}")
            return
        # First make room below: at the bottom this scrolls, and it keeps the cursor's column.
        room = "\x1bD" * high + f"\x1b[{high}A"
        place = f"\x1b[{high}B{_SAVE}\x1b[{high}A"
        self._write(f"{room}{place}\r\x1b[{high}L" + "\r\n".join(rows) + _RESTORE)

    def _wrapped(self, text: str) -> Sequence[str]:
        width = max(1, self._size()[0] - 1)
        return [line.plain for line in Text(text).wrap(self._console, width)] or [""]

    def _style(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colored else text


def screen() -> Screen | None:
    """The screen of this process; None if its terminal can't move the cursor."""
    console = Console()
    if not console.is_terminal or console.is_dumb_terminal:
        return None
    colored = console.color_system is not None and not console.no_color
    return Screen(write, _size_of_output, colored=colored)


def _size_of_output() -> tuple[int, int]:
    try:
        columns, lines = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return 80, 24
    return columns or 80, lines or 24
