"""Words of a call as people type and paste them: numbers of any length, and bytes of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import pytest
import typer
from typer.testing import CliRunner

from bot.cli.app import add_operators
from bot.cli.commands import outbox, runs
from bot.cli.session import MISUSED, CommandFailed
from bot.clock import SystemClock
from storage.engine.database import Database, DatabaseSettings
from tests.cli.seeded import fill

NUMBERS = ["9" * 18, "9" * 19, "9" * 5_000, "²", "٣", "0x1", "1e3", ""]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_that_no_row_has_is_said_to_be_none(sqlite_url: str, number: str) -> None:
    runner = CliRunner(env={"DATABASE_URL": sqlite_url})
    for app, words in (
        (outbox.app, ["resolve", number, "--lost", "--dry-run"]),
        (outbox.letters, ["dismiss", number, "--dry-run"]),
        (runs.app, ["show", number]),
    ):
        said = runner.invoke(app, words)
        assert isinstance(said.exception, CommandFailed | SystemExit), (words, said.exception)
        assert said.exit_code == 1


def test_a_user_whose_name_is_no_text_is_recorded_with_other_letters(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "an\udcfcn")
    with closing(Database(DatabaseSettings(sqlite_url), SystemClock())) as db:
        db.now_sync(fill)
        words = ["close", "2", "--as", "answered", "--reason", "it", "--yes"]
        said = CliRunner(env={"DATABASE_URL": sqlite_url}).invoke(runs.app, words)
        assert said.exit_code == 0, (said.exception, said.output)
        [(detail,)] = db.now_sync(lambda tx: tx.run("SELECT detail FROM runs WHERE id = 2"))
        assert detail.startswith("answered by an\ufffdn@")


@pytest.mark.parametrize(
    "words",
    [
        ("chats", "note", "1", "hello", "--key", "an\udcfcn"),
        ("chats", "reply", "1", "hello", "--key", "an\udcfcn"),
        ("chats", "reply", "1", "an\udcfcn"),
        ("runs", "close", "2", "--as", "answered", "--who", "an\udcfcn"),
        ("runs", "requeue", "1", "an\udcfcn"),
        ("runs", "list", "--chat", "an\udcfcn"),
        ("outbox", "list", "--error", "an\udcfcn"),
        ("status", "an\udcfcn"),
    ],
    ids=" ".join,
)
def test_words_of_a_call_that_are_no_text_are_refused_and_nothing_is_done(
    sqlite_url: str, words: Sequence[str]
) -> None:
    with closing(Database(DatabaseSettings(sqlite_url), SystemClock())) as db:
        db.now_sync(fill)
        app = typer.Typer()
        add_operators(app)
        said = CliRunner(env={"DATABASE_URL": sqlite_url}).invoke(app, list(words))
        assert isinstance(said.exception, CommandFailed)
        assert said.exception.code == MISUSED
        assert "write it as UTF-8" in str(said.exception)


@pytest.mark.parametrize("number", NUMBERS[1:])
def test_an_option_that_takes_a_rows_number_takes_nothing_else(
    sqlite_url: str, number: str
) -> None:
    runner = CliRunner(env={"DATABASE_URL": sqlite_url})
    for app, option in ((outbox.app, "--before"), (outbox.app, "--run"), (runs.app, "--before")):
        said = runner.invoke(app, ["list", option, number])
        assert said.exit_code == 2, (option, said.output)
        assert "no number of a row" in " ".join(said.output.replace("│", " ").split())
