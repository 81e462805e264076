"""Every screen is as its golden says. After a change that is meant, `make goldens` renews them:
read each as the one who is on call at night."""

from __future__ import annotations

from rich.cells import cell_len

from tests.cli.screens import GOLDENS, all_screens


def test_every_screen_is_as_its_golden_says() -> None:
    drawn = dict(all_screens())
    kept = {path: path.read_text(encoding="utf-8") for path in GOLDENS.glob("*/*.*")}
    assert set(kept) == set(drawn), "screens came or went: `make goldens`"
    for path, screen in drawn.items():
        assert screen == kept[path], path


_INDENTED = 14
"""Columns that the name of a value takes in a card."""


def test_no_line_is_longer_than_its_terminal_but_for_an_id_that_is() -> None:
    for path in GOLDENS.glob("[0-9]*/*.txt"):
        width = int(path.parent.name)
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            longest = max(map(cell_len, line.split()), default=0)
            assert cell_len(line) <= width or longest > width - _INDENTED, f"{path}: {line}"
