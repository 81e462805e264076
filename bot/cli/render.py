"""Output of commands: tables and lines for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from bot.cli.wording import safe

_Record = TypeVar("_Record")
Picture = Sequence[RenderableType]

_PIPED_WIDTH = 240
"""Columns where no terminal says how wide it is: lines must not be cut there."""
_SHORT = 26
"""Columns that are no wider are not broken, such as times, while the others keep so much."""
_LEAST = 14

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


def listing(
    found: Sequence[_Record],
    shape: Callable[[_Record], object],
    head: Sequence[str],
    row: Callable[[_Record], Sequence[object]],
    *,
    json: bool,
) -> None:
    """Print records: as JSON, or as a table with a row for each."""
    if json:
        as_json([shape(record) for record in found])
    else:
        table(head, [row(record) for record in found])


def lines(texts: Sequence[str]) -> None:
    """Print lines, as they are but for what could disturb a terminal."""
    for text in texts:
        sys.stdout.write(safe(text) + "\n")


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their names. A terminal is spared the columns without anything."""
    if sys.stdout.isatty() and rows:
        told = [at for at in range(len(head)) if any(row[at] not in (None, "") for row in rows)]
        head, rows = [head[at] for at in told], [[row[at] for at in told] for row in rows]
    console = _console()
    console.print(_table(head, rows, console.width))


def _console() -> Console:
    width = None if sys.stdout.isatty() else _PIPED_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def _table(head: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> Table:
    drawn = Table(box=None)
    cells = [[_cell(value) for value in row] for row in rows]
    names = [Text(safe(name), style="bold") for name in head]
    whole = _unbroken(
        [max(text.cell_len for text in column) for column in zip(names, *cells, strict=True)], width
    )
    for at, name in enumerate(names):
        drawn.add_column(name, overflow="fold", no_wrap=at in whole)
    for row in cells:
        drawn.add_row(*row)
    return drawn


def _unbroken(widths: Sequence[int], width: int) -> set[int]:
    """The columns that keep their lines whole: the short ones, as long as the rest can be read."""
    left = width - 2 * len(widths)
    whole: set[int] = set()
    for at in sorted(range(len(widths)), key=lambda at: widths[at]):
        others = len(widths) - len(whole) - 1
        if widths[at] > _SHORT or left - widths[at] < _LEAST * others:
            break
        whole.add(at)
        left -= widths[at]
    return whole


def _cell(value: object) -> Text:
    text = "" if value is None else safe(str(value), lines=True)
    return Text(text, style=_STYLES.get(text, ""))


def line(text: str) -> RenderableType:
    """A line of a picture."""
    return Text(safe(text))


def panel(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> RenderableType:
    """A table of a picture, in a box."""
    console = _console()
    drawn = _table(head, rows, console.width - 4)
    return Panel(drawn, title=Text(title), title_align="left", expand=console.is_terminal)


@contextmanager
def screen(*, once: bool) -> Iterator[Callable[[Picture], None]]:
    """Shows pictures while the body runs, each in the place of the last. One that is shown
    once stays to be read, and in a pipe each follows the last."""
    console = _console()
    if once or not sys.stdout.isatty():
        yield lambda picture: console.print(Group(*picture))
        return
    with Live(console=console, auto_refresh=False, screen=True) as live:
        yield lambda picture: live.update(Group(*picture), refresh=True)
