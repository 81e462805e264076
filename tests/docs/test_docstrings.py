"""First lines of docstrings say it: a noun phrase or an imperative, never an indirect question."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("bot", "channels", "storage", "tests", "benchmarks", "examples", "docs")
_QUESTION = re.compile(
    r'^\s*r?"""(?:Whether|How|What|Which|Where|When|Who|Whose|Why|If)\b.*', re.MULTILINE
)


def test_no_docstring_begins_with_an_indirect_question() -> None:
    questions = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for line in _QUESTION.findall(path.read_text(encoding="utf-8"))
    ]
    assert questions == []
