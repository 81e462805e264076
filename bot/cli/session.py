"""Shared by all commands: settings, the operator's session, names, exit codes."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from bot.cli.options import Acting
from bot.lazy_imports import lazy_imports

with lazy_imports(__name__):
    import asyncio
    import getpass

    from bot.domain.message import clean
    from bot.observability.logs import set_up_logs
    from bot.operations.actions import Operator
    from bot.wiring import OperatorSession, Settings, operator_session, read_settings
    from storage.statements.tx import Tx
    from storage.views import lookup

T = TypeVar("T")

DONE = 0
NOT_DONE = 1
"""Something is stuck, was refused, came too late, or does not exist."""
MISUSED = 2
"""The call, the settings or the database is wrong; nothing was done."""


class CommandFailed(Exception):
    """Ends a command with one line on standard error and this exit code."""

    def __init__(self, said: str, code: int = NOT_DONE) -> None:
        super().__init__(said)
        self.code = code


@contextmanager
def as_text(name: str = "the words") -> Iterator[None]:
    """Turn a UnicodeError in the body, which reads or checks words of a call or of standard input,
    into a CommandFailed with the `name` of the words. Bytes that are not text would reach people as
    other characters, or not at all."""
    try:
        yield
    except UnicodeError:
        said = f"{name}: not in the character set of this terminal; write it as UTF-8"
        raise CommandFailed(said, MISUSED) from None


def words_given(text: str) -> str:
    """The words of an argument; if it is `-`, those of standard input. Raises CommandFailed."""
    if text != "-":
        return text
    with as_text():
        words = sys.stdin.read()
        words.encode()  # Python reads bytes that it can't decode as lone surrogates
    return words


@contextmanager
def without_rich() -> Iterator[None]:
    """Make rich look absent to the modules that the body imports: structlog and httpx load it if
    they can, for tracebacks and tables that are never drawn here."""
    loaded = sys.modules.get("rich")
    sys.modules["rich"] = None  # type: ignore[assignment]  # makes an import of it fail
    try:
        yield
    finally:
        sys.modules.pop("rich", None)
        if loaded is not None:
            sys.modules["rich"] = loaded


def settings_with_logs(level: str | None = None, *, foreign: bool = True) -> Settings:
    """The settings of this call, after setting up logs by them. Without `foreign`, no code runs but
    ours. Raises ConfigurationError."""
    settings = read_settings()
    with without_rich():
        set_up_logs(
            level or settings.log_level,
            as_json=settings.log_format == "json",
            secrets=settings.secrets(),
            development=settings.development,
            foreign=foreign,
        )
    return settings


def in_session(
    work: Callable[[OperatorSession], Awaitable[T]], *, tells: bool = False, speaks: bool = False
) -> T:
    """The result of `work` in a session with the database. `tells` and `speaks` are those of
    `operator_session`, but telling includes speaking.

    Raises ConfigurationError, DatabaseUnavailable.
    """
    settings = settings_with_logs("WARNING", foreign=tells or speaks)

    async def with_session() -> T:
        async with operator_session(settings, tells=tells, speaks=tells or speaks) as session:
            return await work(session)

    return asyncio.run(with_session())


def program() -> str:
    """The way in which this program was called, for showing the next command."""
    name = Path(sys.argv[0])
    if name.name == "__main__.py":
        return f"{sys.executable} -m bot.cli"
    if shutil.which(name.name) == str(name):
        return name.name
    here = Path.cwd()
    return str(name.relative_to(here) if name.is_relative_to(here) else name)


def operator_of(acting: Acting) -> Operator:
    """The operator that acts: the one of `--who`, or else the user of this machine."""
    reason = acting.reason.strip()
    if who := acting.who.strip():
        return Operator(who, reason)
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid{os.getuid()}"
    return Operator(clean(f"{user}@{socket.gethostname()}"), reason)


def one_run(tx: Tx, name: str) -> int:
    """The run with this number or request id. Raises CommandFailed."""
    return _only(lookup.runs_named(tx, name), name, "run")


def one_chat(tx: Tx, name: str) -> int:
    """The chat with this number or address. Raises CommandFailed."""
    return _only(lookup.chats_named(tx, name), name, "chat")


async def chats_of(session: OperatorSession, names: Sequence[str] | None) -> tuple[int, ...]:
    """The chats with these numbers or addresses. Raises CommandFailed."""
    return tuple([await session.rt.db.read(one_chat, name) for name in names or ()])


def _only(found: Sequence[int], name: str, kind: str) -> int:
    if not found:
        raise CommandFailed(f"no {kind} is named {name}; `{kind}s list` shows what there is")
    if len(found) > 1:
        several = ", ".join(map(str, found))
        way = f"give the number; `{kind}s list` tells them apart"
        raise CommandFailed(f"{name} names {len(found)} {kind}s: {several}; {way}")
    return found[0]
