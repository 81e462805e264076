"""What a command prints: tables and lines for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from bot.cli.wording import safe

_PIPED_WIDTH = 240
"""Columns where no terminal says how wide it is: lines must not be cut there."""

_STYLES = {
    "done": "green",
    "ok": "green",
    "warning": "yellow",
    "too late": "yellow",
    "refused": "red",
    "problem": "red",
}


def as_json(value: object) -> None:
    """Print a value as JSON and nothing else. Only ASCII: safe for any terminal."""
    text = json.dumps(value, ensure_ascii=True, indent=2).replace("\x7f", "\\u007f")
    sys.stdout.write(text + "\n")


def lines(texts: Sequence[str]) -> None:
    """Print lines, as they are but for what could disturb a terminal."""
    for text in texts:
        sys.stdout.write(safe(text) + "\n")


def complain(text: str) -> None:
    """Print something on standard error."""
    sys.stderr.write(f"answerback: {safe(text, lines=True)}\n")


def table(head: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> None:
    """Print rows under their names."""
    _console().print(_table(head, rows, title))


def _console() -> Console:
    width = None if sys.stdout.isatty() else _PIPED_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def _table(head: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> Table:
    drawn = Table(title=Text(safe(title)) if title else None, title_justify="left", box=None)
    for name in head:
        drawn.add_column(Text(safe(name), style="bold"), overflow="fold")
    for row in rows:
        drawn.add_row(*(_cell(value) for value in row))
    return drawn


def _cell(value: object) -> Text:
    text = "" if value is None else safe(str(value), lines=True)
    return Text(text, style=_STYLES.get(text, ""))


class Screen:
    """A picture that is drawn over and over."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._blocks: list[RenderableType] = []

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Add a table to the next picture."""
        self._blocks.append(Panel(_table(head, rows), title=Text(title), title_align="left"))

    def line(self, text: str) -> None:
        """Add a line to the next picture."""
        self._blocks.append(Text(safe(text)))

    def show(self) -> None:
        """Show what was added, in place of the last picture."""
        self._live.update(Group(*self._blocks), refresh=True)
        self._blocks = []


@contextmanager
def screen() -> Iterator[Screen]:
    """A live picture while the body runs."""
    with Live(console=_console(), auto_refresh=False, screen=sys.stdout.isatty()) as live:
        yield Screen(live)
