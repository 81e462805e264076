"""The pages that are written from the code say what the code says."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

import bot.api

ROOT = Path(__file__).parents[2]
REFERENCE = runpy.run_path(str(ROOT / "docs" / "reference"))
PAGES: dict[str, Callable[[], str]] = REFERENCE["PAGES"]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_the_codes(page: str) -> None:
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert written == PAGES[page](), f"docs/{page} is out of date: `make reference` writes it anew"


def test_every_name_that_an_agent_may_import_is_explained() -> None:
    page = PAGES["api.md"]()
    assert {name for name in bot.api.__all__ if f"\n### {name}\n" not in page} == set()


def test_every_field_that_an_agent_may_read_is_explained() -> None:
    rows = [line for line in PAGES["api.md"]().splitlines() if line.startswith("| `")]
    assert len(rows) > 40
    assert [row for row in rows if row.endswith("| |")] == []
