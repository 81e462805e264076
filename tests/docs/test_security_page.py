"""Every line of SECURITY.md that claims something names the tests that tried it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
CLAIMS = [
    [cell.strip() for cell in row.strip("|").split(" | ")]
    for row in re.findall(r"^\| .* \|$", PAGE, re.MULTILINE)
    if "`tests/" in row
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim[0])
def test_each_test_that_a_line_names_is_there(claim: list[str]) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", claim[-1])
    assert named
    for file, test in named:
        source = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {test or 'test_'}", source, re.MULTILINE), (file, test)


def test_no_line_against_something_goes_without_a_test() -> None:
    tables = re.findall(r"^\| against \|.*\n(?:\|.*\n)+", PAGE, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()[2:]]
    assert len(tables) >= 4
    assert [row for row in rows if "`tests/" not in row] == []
