"""The examples of the test kit pass, and the page shows them as they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from examples.test_lamps import test_it_charges_once_wherever_it_dies as test_lamps
from examples.test_shop import test_the_shop_gets_one_order as test_shop

ROOT = Path(__file__).parents[2]

__all__ = ["test_lamps", "test_shop"]


@pytest.mark.parametrize("name", ["lamps.py", "test_lamps.py", "test_shop.py"])
def test_the_page_shows_the_examples(name: str) -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r'```python title="examples/([a-z_.]+)"\n(.*?)```', page, re.DOTALL))
    assert shown[name] == (ROOT / "examples" / name).read_text(encoding="utf-8")


def test_the_examples_need_no_plugin_but_the_one_that_the_page_names() -> None:
    ours = ["timeout", "xdist", "hypothesispytest", "valkey"]
    words = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "examples/test_lamps.py"]
    without = [word for plugin in ours for word in ("-p", f"no:{plugin}")]
    subprocess.run([*words, *without], cwd=ROOT, check=True, capture_output=True)
