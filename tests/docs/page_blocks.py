"""Pieces of code of the pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
SHELL = ("sh", "bash", "shell")


@dataclass(frozen=True)
class Block:
    """A piece of code of a page. `language` is empty where the page names none."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks() -> Iterator[Block]:
    """Every piece of every page."""
    for page in PAGES:
        for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
            if token.type in ("fence", "code_block"):
                language = (token.info.split() or [""])[0]
                line = token.map[0] + 1 if token.map else 0
                yield Block(page.name, line, language, token.content)
