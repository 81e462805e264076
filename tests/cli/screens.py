"""Every screen of the command line, drawn from one database; run as a module, renews the goldens.

.venv/bin/python -m tests.cli.screens
"""

from __future__ import annotations

import io
import logging
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import structlog
import typer
from typer.main import get_command

from bot.cli.app import add_operators
from bot.cli.commands import checks
from bot.clock import SystemClock
from bot.domain.findings import Finding, Level
from storage.engine.database import Database, DatabaseSettings
from storage.schema.migrate import upgrade
from tests.cli.seeded import BOOT, LONG_REQUEST, NOW, SINCE_BOOT, fill

GOLDENS = Path(__file__).parent / "goldens"
PIPE = "pipe"
WIDTHS = ("80", "120")
ELSEWHERE = ("60", PIPE)
ELSEWHERE_TOO = ("stuck", "top", "runs-list", "runs-show-uncertain", "outbox-list-text")
"""Screens that are drawn for ELSEWHERE, too."""
SCREENS = {
    "stuck": "stuck --offline",
    "top": "top --once",
    "explain": "explain",
    "status-answered": "status tg-700100201-41 --text",
    "status-uncertain": "status tg-700100201-42",
    "status-failed": "status tg-700100204-46",
    "status-unknown": "status tg-0-0",
    "runs-list": "runs list",
    "runs-list-chat": "runs list --chat 1",
    "runs-list-none": "runs list --error nonsense",
    "runs-show-answered": "runs show 1 --text",
    "runs-show-uncertain": "runs show 2",
    "runs-show-notice-refused": "runs show 3",
    "runs-show-dead": "runs show 12",
    "runs-show-put-off": f"runs show {LONG_REQUEST} --text",
    "runs-show-hostile": "runs show 6 --text",
    "runs-why-uncertain": "runs why 2",
    "runs-why-notice-refused": "runs why 3",
    "runs-why-waiting": "runs why 13",
    "runs-why-dead": "runs why 12",
    "runs-why-put-off": "runs why 14",
    "runs-why-set-aside": "runs why 15",
    "runs-why-unclaimed": "runs why 17",
    "runs-why-kept": "runs why 18",
    "runs-why-looked-up": "runs why 19",
    "runs-why-late": "runs why 20",
    "runs-close": "runs close 17 --as cancelled --dry-run --who ann@desk",
    "chats-list": "chats list",
    "chats-show": "chats show 1",
    "chats-show-text": "chats show 1 --text",
    "chats-show-hostile": "chats show 4 --text",
    "runs-show-handoff": "runs show 51 --text",
    "status-wanted": "status tg-700100212-92",
    "chats-show-paused": "chats show 5 --text",
    "chats-show-wanted": "chats show 12",
    "chats-show-wanted-text": "chats show 12 --text",
    "chats-list-wanted": "chats list --wanted",
    "chats-inbox": "chats inbox",
    "chats-inbox-uncertain": "chats inbox --reason uncertain",
    "chats-answered": "chats answered 5 --dry-run --who ann@desk",
    "chats-show-wide": "chats show 7 --text",
    "outbox-list": "outbox list",
    "outbox-list-text": "outbox list --text",
    "outbox-resolve": "outbox resolve 32 --delivered --dry-run --who ann@desk",
    "letters-list": "letters list --text",
    "db-compact": "db compact",
}
PICTURES = {
    "answered": "1 --text",
    "uncertain": "2",
    "note-refused": "3",
    "apologised": "5",
    "hostile": "6 --text",
    "stopped": "7",
    "closed-by-hand": "8",
    "dead": "12",
    "put-off": "14",
    "looked-up": "19",
}
"""Runs that are drawn."""
FINDINGS = (
    Finding("settings", Level.OK, "they fit together"),
    Finding(
        "platforms",
        Level.WARNING,
        "none is configured: there is only the chat of `answerback up`",
        "set TELEGRAM_BOT_TOKEN, or TWILIO_ACCOUNT_SID and its companions, or WEB",
    ),
    Finding(
        "database", Level.PROBLEM, "there is no file data/answerback.db", "answerback db upgrade"
    ),
)
"""Findings of `doctor`, which looks at the machine."""
EMPTY = {
    "webhook-info-nothing": "webhook info",
    "stuck-nothing": "stuck --offline",
    "top-nothing": "top --once",
    "runs-list-nothing": "runs list",
    "chats-list-nothing": "chats list",
    "outbox-list-nothing": "outbox list",
    "letters-list-nothing": "letters list",
}


class Terminal(io.StringIO):
    """A terminal that keeps what was written to it."""

    def isatty(self) -> bool:
        return True

    @property
    def plain(self) -> str:
        """The written text without its colours."""
        return plain(self.getvalue())


def plain(written: str) -> str:
    """The written text without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", written)


@contextmanager
def as_it_was() -> Iterator[pytest.MonkeyPatch]:
    """Let a command set up the process as its own, and put everything back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    hooks = sys.excepthook, sys.unraisablehook, threading.excepthook
    try:
        with pytest.MonkeyPatch.context() as patch:
            yield patch
    finally:
        root.handlers[:], root.level = handlers, level
        sys.excepthook, sys.unraisablehook, threading.excepthook = hooks
        logging.captureWarnings(False)
        structlog.reset_defaults()


@contextmanager
def at_the_moment(folder: Path) -> Iterator[None]:
    """Make it NOW on this machine, which knows of no settings but the database in this folder."""
    with as_it_was() as patch:
        patch.setattr(SystemClock, "wall", lambda _: NOW)
        patch.setattr(SystemClock, "boot", lambda _: (BOOT, SINCE_BOOT))
        patch.setenv("DATABASE_URL", f"sqlite:///{folder}/answerback.db")
        patch.setenv("LINES", "50")
        patch.setenv("TERM", "xterm-256color")
        patch.chdir(folder)
        yield


def seed(folder: Path) -> None:
    """Fill the folder's database."""
    db = Database(DatabaseSettings(f"sqlite:///{folder}/answerback.db", pool=1), SystemClock())
    try:
        db.now_sync(fill)
    finally:
        db.close()


@cache
def commands() -> Any:
    """The commands for operators."""
    app = typer.Typer()
    add_operators(app)
    return get_command(app)


def drawn(screen: str, width: str) -> str:
    """The screen on a terminal of so many columns, or as it goes into a pipe, and the exit code."""
    shown = io.StringIO() if width == PIPE else Terminal()
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(shown),
        redirect_stderr(shown),
    ):
        patch.setenv("COLUMNS", "80" if width == PIPE else width)
        code = commands().main(screen.split(), standalone_mode=False) or 0
    return f"$ answerback {screen}\n{plain(shown.getvalue())}[{code}]\n"


def picture(run: str) -> str:
    """The run as it is drawn."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        commands().main(["runs", "show", *run.split(), "--svg"], standalone_mode=False)
    return printed.getvalue()


def drawn_findings(width: str) -> str:
    """The findings of a doctor, as `drawn` would tell them."""
    shown = io.StringIO() if width == PIPE else Terminal()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(shown):
        patch.setenv("COLUMNS", "80" if width == PIPE else width)
        checks.tell(FINDINGS, json=False)
    return f"$ answerback doctor\n{plain(shown.getvalue())}"


def all_screens() -> Iterator[tuple[Path, str]]:
    """Every screen as it is now, with the path of its golden."""
    for width in (*WIDTHS, *ELSEWHERE):
        yield GOLDENS / width / "doctor.txt", drawn_findings(width)
    for screens, filled in ((EMPTY, False), (SCREENS, True)):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            upgrade(f"sqlite:///{folder}/answerback.db")
            with at_the_moment(folder):
                if filled:
                    seed(folder)
                    for name, run in PICTURES.items():
                        yield GOLDENS / "svg" / f"{name}.svg", picture(run)
                for name, screen in screens.items():
                    for width in (*WIDTHS, *(ELSEWHERE if name in ELSEWHERE_TOO else ())):
                        yield GOLDENS / width / f"{name}.txt", drawn(screen, width)


def main() -> None:
    """Renew every golden."""
    for old in GOLDENS.glob("*/*.*"):
        old.unlink()
    for path, screen in all_screens():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(screen, encoding="utf-8")


if __name__ == "__main__":
    main()
