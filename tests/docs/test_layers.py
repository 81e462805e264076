"""The picture of the layers is the code's."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS = runpy.run_path(str(ROOT / "docs" / "layers.py"))


def test_the_picture_shows_the_imports_as_they_are() -> None:
    drawn = LAYERS["draw"](LAYERS["rooms"]())
    shown = (ROOT / "docs" / "layers.svg").read_text(encoding="utf-8")
    assert shown == drawn, "the imports between rooms changed: `make picture` draws them anew"


def test_rooms_that_import_each_other_in_a_circle_are_refused() -> None:
    with pytest.raises(ValueError, match="circle"):
        LAYERS["floors"]({"one": {"other"}, "other": {"one"}})
