"""Numbers of rows as people type and paste them: of any length, and none at all."""

from __future__ import annotations

from contextlib import closing

import pytest
from typer.testing import CliRunner

from bot.cli.commands import outbox, runs
from bot.cli.session import CommandFailed
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


def test_bytes_that_are_no_text_are_stored_as_other_letters(sqlite_url: str) -> None:
    with closing(Database(DatabaseSettings(sqlite_url), SystemClock())) as db:
        db.now_sync(fill)
        words = ["close", "2", "--as", "answered", "--who", "an\udcfcn", "--reason", "it\udcff"]
        said = CliRunner(env={"DATABASE_URL": sqlite_url}).invoke(runs.app, [*words, "--yes"])
        assert said.exit_code == 0, (said.exception, said.output)
        [(detail,)] = db.now_sync(lambda tx: tx.run("SELECT detail FROM runs WHERE id = 2"))
        assert detail == "answered by an\ufffdn: it\ufffd"


@pytest.mark.parametrize("number", NUMBERS[1:])
def test_an_option_that_takes_a_rows_number_takes_nothing_else(
    sqlite_url: str, number: str
) -> None:
    runner = CliRunner(env={"DATABASE_URL": sqlite_url})
    for app, option in ((outbox.app, "--before"), (outbox.app, "--run"), (runs.app, "--before")):
        said = runner.invoke(app, ["list", option, number])
        assert said.exit_code == 2, (option, said.output)
        assert "no number of a row" in " ".join(said.output.replace("│", " ").split())
