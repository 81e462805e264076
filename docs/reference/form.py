"""The form that the pages of the reference have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
MADE = "<!-- Made by `make reference`: change the code's own words instead. -->"


def page(*pieces: str) -> str:
    """A page of these pieces, without those that are empty."""
    return "\n\n".join(piece for piece in pieces if piece) + "\n"


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table, whose cells may hold bars."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(_line(cells) for cells in lines)


def _line(cells: tuple[str, ...]) -> str:
    return "|" + "".join(f" {escaped(cell)} |" if cell else " |" for cell in cells)


def escaped(text: str) -> str:
    """A text as it may stand in a cell."""
    return text.replace("|", "\\|")


def plain(value: object) -> str:
    """A default as a person writes it."""
    whole = isinstance(value, float) and value.is_integer()
    return f"{value:.0f}" if whole else str(value)
