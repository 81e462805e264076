"""Paths and commands that the pages name exist, and first lines are no questions."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
_PATH = re.compile(
    r"(?:`|\]\()((?:bot|channels|storage|tests|docs|examples|deploy|benchmarks|\.ci)/[\w./-]*"
    r"|[A-Z]+\.md|compose\.yaml|\.env\.example|pyproject\.toml)(?:::(\w+))?"
)
_VERB = re.compile(r"`?answerback ((?:[a-z]+ ?)+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [
        f"{path}::{name}" if name else path
        for path, name in _PATH.findall(text)
        if not _exists(page, path, name)
    ]
    assert missing == []


def _exists(page: Path, path: str, name: str) -> bool:
    places = [place for place in (ROOT / path, page.parent / path) if place.exists()]
    if not places or not name:
        return bool(places)
    return (
        re.search(rf"\b(?:def|class) {name}\b", places[0].read_text(encoding="utf-8")) is not None
    )


def test_every_page_is_in_a_list_of_the_front_page_once() -> None:
    """The lists are the navigation of the site, too: `make docs`."""
    front = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[[^\]]+\]\(([\w./-]+\.md)\)", front, re.MULTILINE)
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    outside = {f"../{page.name}" for page in ROOT.glob("*.md")}
    assert pages | outside <= set(listed)
    assert len(listed) == len(set(listed))


def _verbs(*path: str) -> set[str]:
    """The verbs that the program's own help lists."""
    shown = subprocess.run(
        [sys.executable, "-m", "bot.cli", *path, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "200", "TERM": "dumb"},
    )
    return set(re.findall(r"^[\s│]+([a-z]+)  ", shown.stdout, re.MULTILINE))


def test_every_command_that_the_readme_names_is_one() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    known = _verbs()
    assert known, "the help lists no commands"
    named = {match.split()[0] for match in _VERB.findall(text)}
    assert named <= known


@pytest.mark.parametrize("place", ["bot", "channels", "storage", "tests", "benchmarks", "docs"])
def test_no_module_begins_with_an_indirect_question(place: str) -> None:
    word = r"(what|who\w*|where|when|why|how|which|whether)\b"
    asking = re.compile(rf'"""({word}|[^\n"]*: {word})', re.IGNORECASE)
    code = sorted((ROOT / place).rglob("*.py"))
    assert [str(path) for path in code if asking.match(path.read_text(encoding="utf-8"))] == []
