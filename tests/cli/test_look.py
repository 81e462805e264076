"""Output as a person sees it: a terminal of 80 columns, and a pipe."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout

import pytest

from bot.cli import render

AT = "2027-01-15T09:00:00.000Z"
HEAD = ("at", "who", "what", "detail", "holder")
ROW = (AT, "worker", "claimed", "attempt 1, failures 0, deaths of its holders 0, in a while", "")


class Terminal(io.StringIO):
    """A terminal that keeps what was written to it."""

    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.getvalue()).splitlines()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def test_in_a_terminal_times_are_whole_and_columns_without_anything_are_left_out(
    terminal: Terminal,
) -> None:
    with redirect_stdout(terminal):
        render.table(HEAD, [ROW])
    assert any(AT in line for line in terminal.lines)
    assert max(len(line.rstrip()) for line in terminal.lines) <= 80
    assert "holder" not in terminal.lines[0]
    told = " ".join(" ".join(terminal.lines).split())
    assert "deaths" in told
    assert "in a while" in told


def test_a_pipe_has_every_column_and_one_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    render.table(HEAD, [ROW, ROW])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == list(HEAD)
    assert len(rows) == 2
    assert "\x1b" not in head


def test_where_all_is_long_nothing_is_cut(terminal: Terminal) -> None:
    words = [letter * 60 for letter in "abc"]
    with redirect_stdout(terminal):
        render.table(("one", "two", "three"), [words])
    for word in words:
        assert "".join(terminal.lines).count(word[0]) >= 60


def test_a_picture_shown_once_stays_on_the_terminal(terminal: Terminal) -> None:
    with redirect_stdout(terminal), render.screen(once=True) as show:
        show([render.line("last minute: nothing"), render.panel("runs", ("ready",), [(3,)])])
    assert "\x1b[?1049h" not in terminal.getvalue(), "it went to the other screen, which is gone"
    assert terminal.getvalue().endswith("\n")
    assert terminal.lines[0].strip() == "last minute: nothing"


def test_in_a_pipe_each_picture_is_as_wide_as_it_must(capsys: pytest.CaptureFixture[str]) -> None:
    with render.screen(once=False) as show:
        for ready in (3, 4):
            show([render.panel("runs", ("ready",), [(ready,)])])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "3" in line or "4" in line] == ["│  3      │", "│  4      │"]
