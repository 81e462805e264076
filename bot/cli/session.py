"""What commands share: settings, the operator's session, names, and how they fail."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from bot.observability.logs import set_up_logs
from bot.operations.actions import Operator
from bot.wiring import OperatorSession, Settings, operator_session, read_settings
from storage.engine.tx import Tx
from storage.views import lookup

T = TypeVar("T")

DONE = 0
NOT_DONE = 1
"""Something is stuck, was refused, came too late, or is not there."""
MISUSED = 2
"""The call, the settings or the database is wrong; nothing was done."""


class CommandFailed(Exception):
    """Ends a command with one line on standard error and this exit code."""

    def __init__(self, said: str, code: int = NOT_DONE) -> None:
        super().__init__(said)
        self.code = code


def settings_with_logs(level: str | None = None) -> Settings:
    """The settings of this call, with logging set up by them. Raises ConfigurationError."""
    settings = read_settings()
    set_up_logs(
        level or settings.log_level,
        as_json=settings.log_format == "json",
        secrets=settings.secrets(),
    )
    return settings


def in_session(
    work: Callable[[OperatorSession], Awaitable[T]], *, tells: bool = False, speaks: bool = False
) -> T:
    """Do this with the database at hand; with `tells` and `speaks` as in `operator_session`.

    Raises ConfigurationError, DatabaseUnavailable.
    """
    settings = settings_with_logs("WARNING")

    async def sit_down() -> T:
        async with operator_session(settings, tells=tells, speaks=tells or speaks) as session:
            return await work(session)

    return asyncio.run(sit_down())


def me(who: str, reason: str) -> Operator:
    """Who acts: `who`, or the user of this machine."""
    return Operator(who.strip() or f"{_user()}@{socket.gethostname()}", reason.strip())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid{os.getuid()}"


def one_run(tx: Tx, name: str) -> int:
    """The run of this number or request id. Raises CommandFailed."""
    found = lookup.runs_named(tx, name)
    return _only(found, name, "run", "`runs list` shows what there is")


def one_chat(tx: Tx, name: str) -> int:
    """The chat of this number or address. Raises CommandFailed."""
    found = lookup.chats_named(tx, name)
    return _only(found, name, "chat", "`chats list` shows what there is")


def _only(found: Sequence[int], name: str, kind: str, hint: str) -> int:
    if not found:
        raise CommandFailed(f"no {kind} is named {name}; {hint}")
    if len(found) > 1:
        several = ", ".join(map(str, found))
        raise CommandFailed(f"{name} names {len(found)} {kind}s: {several}; give the number")
    return found[0]


def names_given(names: Sequence[str]) -> tuple[list[str], bool]:
    """The names, with `-` replaced by what standard input lists: one a line, or the JSON of a
    reading command. The second value says that standard input was read."""
    if "-" not in names:
        return list(names), False
    text = sys.stdin.read()
    listed = _from_json(text) if text.lstrip().startswith("[") else _from_lines(text)
    return [*(n for n in names if n != "-"), *listed], True


def _from_json(text: str) -> list[str]:
    try:
        return [str(row["id"]) for row in json.loads(text)]
    except (ValueError, TypeError, KeyError) as error:
        raise CommandFailed(
            "standard input is not the JSON of a list that has ids", MISUSED
        ) from error


def _from_lines(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines() if line.strip()]
