"""Standard files that are closed or hold no text: a sentence and an exit code, as ever."""

from __future__ import annotations

import gc
import io
import sys

import pytest
import typer

from bot.cli import app as cli
from bot.cli.output import render
from bot.cli.session import MISUSED, CommandFailed, words_given


def test_a_command_whose_standard_files_are_closed_ends_with_its_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cli, "app", typer.Typer())
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda _seldom: None)
    monkeypatch.setattr(sys, "argv", ["answerback", "operator", "hash"])
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == MISUSED


def test_letters_that_the_terminal_lacks_are_spelled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()
    app.callback()(lambda: None)
    app.command("up")(lambda: render.lines(["caf\u00e9 \u043f"]))
    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(sys, "argv", ["answerback", "up"])
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, "latin-1", write_through=True))
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 0
    assert printed.getvalue() == "caf\u00e9 \\u043f\n".encode("latin-1")


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_words_that_are_no_text_reach_nobody(monkeypatch: pytest.MonkeyPatch, errors: str) -> None:
    latin = "caf\u00e9".encode("latin-1")
    given = io.TextIOWrapper(io.BytesIO(latin), encoding="utf-8", errors=errors)
    monkeypatch.setattr(sys, "stdin", given)
    with pytest.raises(CommandFailed, match="write it as UTF-8") as refused:
        words_given("-")
    assert refused.value.code == MISUSED
