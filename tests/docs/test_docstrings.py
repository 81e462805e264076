"""First lines of docstrings say it: a noun phrase or an imperative, never an indirect question."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("bot", "channels", "storage", "tests", "benchmarks", "examples", "docs")
_QUESTION = re.compile(r"(Whether|How|What|Which|Where|When|Who|Whose|Why|If)\b")
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def test_no_docstring_begins_with_an_indirect_question() -> None:
    questions = [
        f"{path.relative_to(ROOT)}: {line}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for line in _first_lines(path)
        if _QUESTION.match(line)
    ]
    assert questions == []


def _first_lines(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = [node for node in ast.walk(tree) if isinstance(node, _Documented)]
    return [
        docstring.split("\n")[0] for node in documented if (docstring := ast.get_docstring(node))
    ]
