"""Failures that other bots' users reported: each has a test that names it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CASES = """
B01 B04 B05 B07 B10 B12 B13 B15 B17 B19 B21 B23 B26 B27 B29 B31 B33 B35 B37 B40 B42 B43 B45 B47 B49
B51 B53 B55 B57 B59 B61 B63 B65 B67 B69 B71 B74 B76 B78 B80 B82 B85 B86 B88 B90 B91 B93 B95 B97 B99
B101 B103 B105 B107 B109 B111 B112 B113 B114 B115 B116 B117 B118 B119 B120 B121 B122 B123 B124 B125
B126 B141 B142 B143 B144 B145 B146 B147 B148 B156 B157 B158 B159 B160 B161 B162 B163 B164 B165 B166
B167
"""
_NAMED = re.compile(r"def test_(b\d+)_")


@pytest.fixture(scope="module")
def named() -> set[str]:
    """The cases that some test's name begins with."""
    return {
        case.upper()
        for path in TESTS.rglob("test_*.py")
        for case in _NAMED.findall(path.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("case", CASES.split())
def test_the_case_has_a_test_of_its_name(named: set[str], case: str) -> None:
    assert case in named
