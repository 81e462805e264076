"""Output of commands: tables, cards and lines for people, JSON for programs.

The width is the terminal's own, or COLUMNS. In a pipe nothing is cut, broken or coloured: each row
is one line. With NO_COLOR a terminal gets no colours either.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from bot.cli.output.layout import GAP, Column, Line, Slot, facts, labelled, laid_out, styled, wrap
from bot.lazy_imports import lazy_imports
from bot.operations.reports.phrases import safe

with lazy_imports(__name__):
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

_Record = TypeVar("_Record")
Picture = Sequence[Line]

_NARROWEST = 40
"""The least columns that lines are laid out for; a narrower terminal breaks them itself."""


def as_json(value: object) -> None:
    """Print a value as JSON and nothing else, in ASCII, which is safe for any terminal."""
    text = json.dumps(value, ensure_ascii=True, indent=2).replace("\x7f", "\\u007f")
    sys.stdout.write(text + "\n")


def listing(
    found: Sequence[_Record],
    shape: Callable[[_Record], object],
    columns: Sequence[Column],
    row: Callable[[_Record], Sequence[object]],
    *,
    none: str,
    json: bool,
) -> None:
    """Print records as JSON, or for people; `none` is the sentence for no records."""
    if json:
        as_json([shape(record) for record in found])
    elif found:
        table(columns, [row(record) for record in found])
    else:
        lines([none])


def lines(texts: Sequence[str]) -> None:
    """Print sentences, broken between words for a terminal."""
    _print(sentences(texts))


def next_step(act: str) -> None:
    """Print the next command, unbroken, and its explanation."""
    _print(step(act))


def step(act: str) -> Picture:
    """The next command, as a part of a picture."""
    return labelled(Column("next", Slot.COMMAND), act, _width())


def table(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their columns' names; on a narrow terminal a card for each."""
    _print(laid_out(columns, rows, _width()))


def sentences(texts: Sequence[str]) -> Picture:
    """Sentences, as a part of a picture."""
    width, whole = _width(), [safe(text) for text in texts]
    return [styled(line) for line in (whole if width is None else wrap(whole, width))]


def figures(told: Sequence[tuple[str, object]]) -> Picture:
    """Names and values, side by side, as a part of a picture."""
    pairs = [safe(f"{name}: {value}") for name, value in told]
    width = _width()
    return [styled(line) for line in ([GAP.join(pairs)] if width is None else facts(pairs, width))]


def section(
    title: str, columns: Sequence[Column], rows: Sequence[Sequence[object]], none: str
) -> Picture:
    """A table under a title, as a part of a picture; `none` is shown if it has no rows."""
    body = laid_out(columns, rows, _width()) if rows else sentences([none])
    return [Line(), styled(title.upper(), "bold"), *body]


@contextmanager
def screen(*, once: bool) -> Iterator[Callable[[Picture], None]]:
    """Show pictures while the body runs, each in the place of the one before. With `once`, or in a
    pipe, they are printed one below the other."""
    if once or not sys.stdout.isatty():
        yield _print
        return
    with Live(console=_console(), auto_refresh=False, screen=True) as live:
        yield lambda picture: live.update(Group(*map(_rich, picture)), refresh=True)


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Callable[[str, bool], None]]:
    """Show one line while the body runs, each in the place of the one before. In a pipe only lines
    that say that something is done are printed, to standard error; with `quiet` none is shown."""
    if quiet:
        yield lambda _line, _done: None
    elif sys.stdout.isatty():
        with Live(console=_console(), auto_refresh=False, transient=True) as live:
            yield lambda line, _done: live.update(Text(safe(line), no_wrap=True), refresh=True)
    else:
        yield _kept


def _kept(line: str, done: bool) -> None:  # noqa: FBT001 - as it is called
    if done:
        sys.stderr.write(f"{safe(line)}\n")


def _width() -> int | None:
    """Columns of the terminal; None in a pipe."""
    if not sys.stdout.isatty():
        return None
    return max(_NARROWEST, shutil.get_terminal_size().columns)


def _print(printed: Picture) -> None:
    console = _console() if sys.stdout.isatty() else None
    if console is None or console.color_system is None:
        sys.stdout.write("".join(f"{line.plain}\n" for line in printed))
        return
    for line in printed:
        console.print(_rich(line), soft_wrap=True)


def _rich(line: Line) -> Text:
    return Text.assemble(*line.pieces)


def _console() -> Console:
    """The terminal, with its colours unless NO_COLOR is set."""
    told = Console(highlight=False, markup=False, emoji=False)
    if not told.no_color:
        return told
    return Console(highlight=False, markup=False, emoji=False, color_system=None)
