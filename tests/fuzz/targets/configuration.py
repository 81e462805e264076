"""Files and words of operators: settings, `.env`, texts, commands, backups to be put back."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from typer.testing import CliRunner

from bot.cli.session import CommandFailed
from bot.clock import SystemClock
from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.settings import file_lines
from bot.texts import Words
from bot.wiring.channels import configured, given_settings, left_off, read_settings, settings_class
from storage import backup
from storage.backup.whole import BackupFailed
from tests.fuzz.engine import Target
from tests.fuzz.mutations import damaged_bytes, strange_text

_EXAMPLE = (Path(__file__).parents[3] / ".env.example").read_bytes()
_TEXTS = (Path(__file__).parents[3] / "bot" / "texts" / "en.toml").read_bytes()
_VALUES = (
    "true",
    "0",
    "-1",
    "15",
    "1e999",
    "nan",
    "10 s",
    "9" * 400,
    "²",
    "https://bot.example.com",
    "https://[::1",
    "postgresql://u@h:99999999/d",
    "postgresql://u:p@h/d?x=%ff",
    "sqlite:///x.db",
    "sqlite://",
    "redis://h:x/0",
    "whatsapp:+15550100099",
    "123:ABC",
    "echo",
    "https://xn--a/",
    "UTC",
    "../../etc/passwd",
    "a,b,,c",
    "10.0.0.0/33",
    "'quoted'",
    "x" * 40,
)


def _given(chance: Random) -> dict[str, str]:
    names = sorted(settings_class().model_fields)
    return {
        chance.choice(names): chance.choice((chance.choice(_VALUES), strange_text(chance)))
        for _ in range(chance.choice((1, 2, 6)))
    }


def _settings(given: Mapping[str, Any]) -> str:
    try:
        settings = given_settings(**given)
        configured(settings)
        left_off(settings)
        settings.terms()
    except ConfigurationError as error:
        assert str(error)
        return "refused"
    return "read"


@contextmanager
def _in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@dataclass(frozen=True)
class _Desk:
    """A folder in which files are written and read."""

    folder: Path

    def env(self, raw: bytes) -> str:
        """Read a `.env`, as every start does."""
        (self.folder / ".env").write_bytes(raw)
        with _in(self.folder):
            lines = file_lines()
            try:
                read_settings()
            except ConfigurationError as error:
                assert str(error)
                return "refused"
        return "read" if lines else "empty"

    def texts(self, raw: bytes) -> str:
        """Read an operator's texts."""
        file = self.folder / "texts.toml"
        file.write_bytes(raw)
        try:
            Words.load(file)
        except ConfigurationError as error:
            assert str(error)
            return "refused"
        return "read"

    def put_back(self, raw: bytes) -> str:
        """Put a backup in the place of a database that is not there."""
        source, place = self.folder / "backup.db", self.folder / "data" / "answerback.db"
        source.write_bytes(raw)
        shutil.rmtree(place.parent, ignore_errors=True)
        try:
            backup.put_back(f"sqlite:///{place}", source, SystemClock())
        except BackupFailed as error:
            assert str(error)
            assert not place.exists()
            return "refused"
        return "put back"


_COMMANDS = (
    "runs list --chat X",
    "runs show X",
    "runs why X",
    "runs close X --as cancelled --dry-run",
    "runs requeue X --dry-run",
    "runs list --older X --newer X",
    "runs list --limit X --before X",
    "runs list --state X",
    "chats show X",
    "chats list --channel X",
    "chats pause X --dry-run",
    "outbox list --chat X",
    "outbox resolve X --lost --dry-run",
    "status X",
    "stuck --json",
)
_NAMES = (
    "1",
    "-1",
    "0",
    "9" * 30,
    "-1001234567890123",
    "+15550100015",
    "tg-1-1",
    "+1…0022",
    "whatsapp:+1",
)


def _words(chance: Random) -> Sequence[str]:
    made = []
    for word in chance.choice(_COMMANDS).split():
        value = chance.choice((chance.choice(_NAMES), strange_text(chance)))
        made.append(value.replace("\x00", "") if word == "X" else word)
    if chance.random() < 0.2:
        made.insert(chance.randrange(len(made) + 1), strange_text(chance).replace("\x00", ""))
    return made


def _command(database: str) -> Any:
    from bot.cli.app import add_operators, app  # noqa: PLC0415 - it takes longer than all others

    add_operators(app)
    runner = CliRunner(env={"DATABASE_URL": database, "TERM": "dumb"})

    def run(words: Sequence[str]) -> str:
        done = runner.invoke(app, list(words))
        if isinstance(done.exception, CommandFailed | ConfigurationError | DatabaseUnavailable):
            return type(done.exception).__name__
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code in (0, 1, 2, 3, 4, 5), done.exit_code
        return f"exit {done.exit_code}"

    async def take(words: Sequence[str]) -> str:
        return await asyncio.to_thread(run, words)

    return take


def targets(folder: Path, template: Path) -> Sequence[Target]:
    """All that operators hand in. `template` is a database at the newest schema."""
    desk = _Desk(folder)
    whole = template.read_bytes()
    database = folder / "commands.db"
    shutil.copyfile(template, database)
    return [
        Target("settings", 20, _settings, _given),
        Target(
            "settings: .env",
            10,
            desk.env,
            lambda chance: damaged_bytes(chance, _EXAMPLE[: chance.randrange(3_000)]),
        ),
        Target("settings: texts", 5, desk.texts, lambda chance: damaged_bytes(chance, _TEXTS)),
        Target("backups", 5, desk.put_back, lambda chance: damaged_bytes(chance, whole)),
        Target("commands", 2, _command(f"sqlite:///{database}"), _words),
    ]
