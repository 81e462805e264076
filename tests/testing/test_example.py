"""The example of the test kit is a test, and the page shows it as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from examples.test_lamps import test_it_charges_once_wherever_it_dies as test_the_example

ROOT = Path(__file__).parents[2]

__all__ = ["test_the_example"]


@pytest.mark.parametrize("name", ["lamps.py", "test_lamps.py"])
def test_the_page_shows_the_files_of_the_example(name: str) -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r'```python title="examples/([a-z_.]+)"\n(.*?)```', page, re.DOTALL))
    assert shown[name] == (ROOT / "examples" / name).read_text(encoding="utf-8")
