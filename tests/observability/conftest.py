"""Everything that a process would write, caught; the machinery is put back after each test."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest
import structlog

from bot.observability import context
from bot.observability.logs import set_up_logs


class Written:
    """Everything that was logged until now, in a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def getvalue(self) -> str:
        """All of it, once it is written."""
        for handler in logging.getLogger().handlers:
            handler.flush()
        self.file.seek(0)
        return self.file.read().decode()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Each line's fields; the format must be JSON."""
        return [json.loads(line) for line in self.getvalue().splitlines()]

    def about(self, event: str) -> dict[str, Any]:
        """The fields of the one line whose event contains this."""
        [found] = [line for line in self.lines if event in line["event"]]
        return found


LogsTo = Callable[..., Written]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LogsTo]:
    """`log(level)` sets logs up and returns what is written from then on."""
    root, ours = logging.getLogger(), logging.getLogger("answerback")
    before = root.handlers[:], root.level, ours.level
    hooks = sys.excepthook, sys.unraisablehook, threading.excepthook

    def set_up(
        level: str = "INFO",
        *,
        as_json: bool = True,
        secrets: Iterable[str] = (),
        development: bool = False,
    ) -> Written:
        written = Written(stack.enter_context((tmp_path / "log").open("a+b")))
        to = written.file.fileno()
        set_up_logs(level, as_json=as_json, secrets=secrets, to=to, development=development)
        return written

    with ExitStack() as stack:
        yield set_up
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])
    sys.excepthook, sys.unraisablehook, threading.excepthook = hooks
    logging.getLogger("answerback.builders").setLevel("NOTSET")
    logging.captureWarnings(False)
    structlog.reset_defaults()
    context._facts.set({})
