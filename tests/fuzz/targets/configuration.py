"""Files and words of operators: settings, `.env`, texts, commands, backups to be put back."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from bot.cli.session import CommandFailed
from bot.clock import SystemClock
from bot.domain.delivery import PartState
from bot.domain.ending import Ending
from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.domain.reply import PartKind
from bot.domain.run import RunState
from bot.operations.canned import canned_texts
from bot.settings import file_lines
from bot.texts import Words
from bot.wiring.channels import configured, given_settings, left_off, read_settings, settings_class
from storage import backup
from storage.backup.whole import BackupFailed
from storage.engine.database import Database, DatabaseSettings
from tests.cli.seeded import fill
from tests.fuzz.engine import Target
from tests.fuzz.mutations import damaged_bytes, strange_text

_EXAMPLE = (Path(__file__).parents[3] / ".env.example").read_bytes()
_TEXTS = (Path(__file__).parents[3] / "bot" / "texts" / "en.toml").read_bytes()
_CANNED = b'hello = "Hello, how can we help?"\nlater = """We look into it.\nTomorrow."""\n'
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

    def canned(self, raw: bytes) -> str:
        """Read an operator's canned texts."""
        file = self.folder / "canned.toml"
        file.write_bytes(raw)
        try:
            texts = canned_texts(file)
        except ConfigurationError as error:
            assert str(error)
            return "refused"
        assert all(texts.values())
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


_GROUPS = ("runs", "chats", "outbox", "letters", "status", "stuck", "recover", "explain")
"""The commands that need a database and nothing else."""
_ENDLESS = ("--watch", "--every")
_NUMBERS = ("1", "-1", "0", "45", "9223372036854775808", "9" * 30, "9" * 5_000, "\u0663", "1e999")
_SPANS = ("10m", "1h", "7d", "0s", "-1s", "1e999h", "9" * 30 + "d", "nan", "5", "1 h")
_CHATS = (
    "1",
    "5",
    "700100201",
    "-1001234567890123",
    "+15550100015",
    "+1…0022",
    "whatsapp:+1",
    "a/b",
)
_KNOWN: Mapping[str, Sequence[str]] = {
    "run": ("1", "2", "12", "tg-700100201-41", "-", *_NUMBERS),
    "request_id": ("tg-700100201-41", "1", *_NUMBERS),
    "chat": _CHATS,
    "part": ("1", "45", *_NUMBERS),
    "letter": ("1", *_NUMBERS),
    "state": [*RunState, *PartState],
    "ending": [one.value for one in Ending],
    "channel": ("telegram", "whatsapp", "web"),
    "kind": list(PartKind),
    **dict.fromkeys(("older", "newer", "for_", "span"), _SPANS),
    **dict.fromkeys(("limit", "before", "seen"), _NUMBERS),
    "as_": ("cancelled", "answered"),
}
_FILES = ("file", "out", "files")
"""Parameters that name a place on this machine: they stay within the folder of the commands."""


@dataclass(frozen=True, slots=True)
class _Option:
    """An option, or an argument where `spelled` is empty; `name` is what it is about."""

    name: str
    spelled: Sequence[str]
    flag: bool
    many: bool


def _commands(
    group: Any, path: Sequence[str] = ()
) -> Iterator[tuple[Sequence[str], Sequence[_Option]]]:
    """Every command below a group, with what it takes."""
    for name, one in group.commands.items():
        if not path and name not in _GROUPS:
            continue
        if hasattr(one, "commands"):
            yield from _commands(one, (*path, name))
            continue
        taken = [
            _Option(
                p.name,
                () if p.param_type_name == "argument" else p.opts,
                bool(getattr(p, "is_flag", False)),
                p.nargs == -1,
            )
            for p in one.params
        ]
        yield (*path, name), [o for o in taken if not set(o.spelled) & set(_ENDLESS)]


def _argument(chance: Random, name: str) -> str:
    """A value as a shell hands it on: bytes without NUL, whatever they say."""
    if name in _FILES:
        place = strange_text(chance).replace("..", "").lstrip("/") if chance.random() < 0.5 else ""
        return _as_argument(place or chance.choice(("new", "there/new", "taken", "taken/new")))
    known = _KNOWN.get(name.rstrip("_"), _KNOWN.get(name, ("hello",)))
    return _as_argument(chance.choice(known) if chance.random() < 0.7 else strange_text(chance))


def _as_argument(text: str) -> str:
    return os.fsdecode(text.encode("utf-8", "surrogatepass").replace(b"\0", b""))


def _words(
    chance: Random, commands: Sequence[tuple[Sequence[str], Sequence[_Option]]]
) -> Sequence[str]:
    path, taken = chance.choice(commands)
    made: list[str] = []
    for option in taken:
        if option.spelled:
            if chance.random() < 0.3:
                made.append(chance.choice(option.spelled))
                made += () if option.flag else (_argument(chance, option.name),)
        elif chance.random() < 0.9:
            count = chance.choice((1, 1, 2)) if option.many else 1
            made += [_argument(chance, option.name) for _ in range(count)]
    if chance.random() < 0.15:
        made.insert(chance.randrange(len(made) + 1), _argument(chance, ""))
    if chance.random() < 0.5 and any("--yes" in option.spelled for option in taken):
        made.append("--yes")
    return [*path, *made]


@dataclass(frozen=True)
class _Shell:
    """The commands of operators, on a database with a past of every kind."""

    folder: Path
    app: Any
    runner: CliRunner

    def run(self, words: Sequence[str]) -> str:
        """Run one, in a folder of its own."""
        with TemporaryDirectory(dir=self.folder) as place, _in(Path(place)):
            Path("taken").touch()
            done = self.runner.invoke(self.app, list(words))
        if isinstance(done.exception, CommandFailed | ConfigurationError | DatabaseUnavailable):
            assert str(done.exception)
            return type(done.exception).__name__
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code in (0, 1, 2, 3, 4, 5), done.exit_code
        return f"exit {done.exit_code}"

    async def take(self, words: Sequence[str]) -> str:
        """The same beside this loop, since a command has one of its own."""
        return await asyncio.to_thread(self.run, words)


def _shell(folder: Path, template: Path) -> Target:
    from bot.cli.app import add_operators, app  # noqa: PLC0415 - it takes longer than all others

    add_operators(app)
    database = folder / "commands.db"
    shutil.copyfile(template, database)
    url = f"sqlite:///{database}"
    with closing(Database(DatabaseSettings(url), SystemClock())) as db:
        db.now_sync(fill)
    shell = _Shell(folder, app, CliRunner(env={"DATABASE_URL": url, "TERM": "dumb"}))
    commands = list(_commands(get_command(app)))
    return Target("commands", 40, shell.take, lambda chance: _words(chance, commands))


_TOML_KEYS = ("hello", "APOLOGY", "en", "de", "en.words", "words", "stop", '"a b"', "''", "x" * 300)
_TOML_VALUES = (
    '"Hello"', "'Hello'", '"""two\nlines"""', '""', '"\\u0000"', '"{name} {}"', '"{0.__class__}"',
    "1", "1e999", "nan", "true", "2027-01-15", "2027-99-99T25:00:00Z", "0x", "[]", '["stop"]',
    "{a = 1}", "9" * 5_000, "[" * 400, "[" * 5_000, "{a=" * 2_000, '"' + "x" * 20_000 + '"',
    "a.b.c", "'" * 3, '"\\ud800"',
)  # fmt: skip


def _toml(whole: bytes) -> Callable[[Random], bytes]:
    """A file of texts: one of ours that is damaged, or lines of any keys and values."""

    def made(chance: Random) -> bytes:
        if chance.random() < 0.4:
            return damaged_bytes(chance, whole)
        lines = []
        for _ in range(chance.choice((1, 2, 5))):
            key, value = chance.choice(_TOML_KEYS), chance.choice(_TOML_VALUES)
            lines.append(f"[{key}]" if chance.random() < 0.3 else f"{key} = {value}")
        raw = "\n".join(lines).encode()
        return damaged_bytes(chance, raw) if chance.random() < 0.3 else raw

    return made


def _env(chance: Random) -> bytes:
    """A `.env`: the example, or lines of any settings, as somebody writes them who guesses."""
    if chance.random() < 0.3:
        return damaged_bytes(chance, _EXAMPLE[: chance.randrange(3_000)])
    lines = []
    for name, value in _given(chance).items():
        form = chance.choice(
            (
                "{}={}",
                "{}={}",
                'export {}="{}"',
                "{}='{}'",
                "{} = {} # why",
                "{}: {}",
                "{}",
                "{}=${{{}}}",
            )
        )
        lines.append(form.format(name.upper(), value))
    raw = "\n".join(lines).encode("utf-8", "surrogatepass")
    return damaged_bytes(chance, raw) if chance.random() < 0.3 else raw


def targets(folder: Path, template: Path) -> Sequence[Target]:
    """All that operators hand in. `template` is a database at the newest schema."""
    desk = _Desk(folder)
    whole = template.read_bytes()
    return [
        Target("settings", 40, _settings, _given),
        Target("settings: .env", 40, desk.env, _env),
        Target("settings: texts", 40, desk.texts, _toml(_TEXTS)),
        Target("settings: canned texts", 40, desk.canned, _toml(_CANNED)),
        Target("backups", 5, desk.put_back, lambda chance: damaged_bytes(chance, whole)),
        _shell(folder, template),
    ]
