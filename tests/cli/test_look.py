"""Output as a person sees it: a terminal of 80 columns, and a pipe."""

from __future__ import annotations

from contextlib import redirect_stdout

import pytest

from bot.cli.output import render
from bot.cli.output.layout import Column, Slot
from tests.cli.screens import Terminal

AT = "2027-01-15 09:00Z (2 d ago)"
COLUMNS = (
    *(Column("at", Slot.TITLE), Column("who", Slot.TITLE), Column("holder")),
    Column("detail", Slot.PROSE),
)
ROW = (AT, "worker", "", "attempt 1, failures 0, deaths of its holders 0, in a while")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def test_in_a_terminal_times_are_whole_and_columns_without_anything_are_left_out(
    terminal: Terminal,
) -> None:
    with redirect_stdout(terminal):
        render.table(COLUMNS, [ROW])
    head, *lines = terminal.plain.splitlines()
    assert head.split() == ["at", "who", "detail"]
    assert lines[0].startswith(AT)
    assert max(map(len, lines)) <= 80
    assert "deaths of its holders 0, in a while" in " ".join(" ".join(lines).split())


def test_a_pipe_has_every_column_one_line_a_row_and_no_colour(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    render.table(COLUMNS, [ROW, ROW])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["at", "who", "holder", "detail"]
    assert [row.endswith("in a while") for row in rows] == [True, True]
    assert "\x1b" not in head


def test_a_terminal_is_coloured_unless_it_asks_for_none(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with redirect_stdout(terminal):
        render.table(COLUMNS, [ROW])
        assert "\x1b[" in terminal.getvalue()
        before = len(terminal.getvalue())
        monkeypatch.setenv("NO_COLOR", "1")
        render.table(COLUMNS, [ROW])
    assert "\x1b" not in terminal.getvalue()[before:]


def test_sentences_are_broken_between_words(terminal: Terminal) -> None:
    with redirect_stdout(terminal):
        render.lines(["a sentence that is rather long " * 5])
    assert max(map(len, terminal.plain.splitlines())) <= 80
    assert terminal.plain.split() == ("a sentence that is rather long " * 5).split()


def test_a_picture_shown_once_stays_on_the_terminal(terminal: Terminal) -> None:
    columns = (Column("ready"),)
    with redirect_stdout(terminal), render.screen(once=True) as show:
        show(
            [
                *render.sentences(["last minute: nothing"]),
                *render.section("runs", columns, [], "none"),
            ]
        )
    assert "\x1b[?1049h" not in terminal.getvalue(), "it went to the other screen, which is gone"
    assert terminal.plain.splitlines() == ["last minute: nothing", "", "RUNS", "none"]


def test_in_a_pipe_each_picture_follows_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    with render.screen(once=False) as show:
        for ready in (3, 4):
            show(render.figures([("ready", ready), ("running", 0)]))
    assert capsys.readouterr().out.splitlines() == ["ready: 3  running: 0", "ready: 4  running: 0"]
