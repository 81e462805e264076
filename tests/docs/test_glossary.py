"""The words of the glossary exist where it says, one row a word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from storage.schema.tables import metadata

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ROWS = [
    (word.strip(), where.strip())
    for word, _, where in _ROW.findall((ROOT / "docs/glossary.md").read_text(encoding="utf-8"))
    if not word.startswith(("---", "word"))
]


def test_the_glossary_has_one_row_a_word() -> None:
    words = [word for word, _ in ROWS]
    assert len(words) == len(set(words))
    assert len(words) >= 30


@pytest.mark.parametrize(("word", "where"), ROWS, ids=[word for word, _ in ROWS])
def test_every_word_exists_where_the_glossary_says(word: str, where: str) -> None:
    if table := re.fullmatch(r"table `(\w+)`", where):
        assert table[1] in metadata.tables, word
        return
    place = re.fullmatch(r"`([\w/]+\.py)(?:::(\w+))?`", where)
    assert place is not None, f"{word}: {where} names neither a table nor a place in the code"
    code = (ROOT / place[1]).read_text(encoding="utf-8")
    if place[2]:
        assert re.search(rf"^(?:async )?(?:def|class) {place[2]}\b", code, re.MULTILINE), word
