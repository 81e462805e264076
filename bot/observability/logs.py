"""Logs: one line for each event, on standard error; `docs/logs.md` lists what is kept out of them.

Everything goes through one formatter (`bot/observability/lines.py`): our own loggers, those of
libraries, structlog's, and errors that nobody handled. The formatter is imported with the first
line, since most commands write none.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import select
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any

from bot.lazy_imports import lazily, lazy_imports

with lazy_imports(__name__):
    from bot.observability.lines import Lines, Looks, send_structlog

_STANDARD_ERROR = 2
_WAITING = 1_000
"""The most lines that wait to be written; lines beyond them are dropped and counted."""
_LAST_LINES = 1.0
"""Seconds that a process which ends waits until its last lines are written."""

_log = logging.getLogger("answerback")

_LOOP_SAYS = (
    "Exception in callback",
    "Future exception was never retrieved",
    "Task exception was never retrieved",
    "Task was destroyed but it is pending",
    "Unhandled error in",
    "Fatal error",
    "Fatal read error",
    "Fatal write error",
)


def set_up_logs(
    level: str,
    *,
    as_json: bool,
    secrets: Iterable[str],
    to: int = _STANDARD_ERROR,
    development: bool = False,
    foreign: bool = True,
) -> None:
    """Send logs to the file descriptor `to`: our own lines from `level` up, and those of libraries
    from WARNING up, since below it they print texts and URLs with tokens.

    `secrets` are removed from every line. On a terminal, or with `development`, an agent's
    exceptions are shown with their whole traceback, and only there builders are told of things
    that are no fault but look like one. `foreign`: code that is not ours will run, and may log by
    structlog.
    """
    out = _Out(to)
    longest_first = tuple(sorted(secrets, key=len, reverse=True))
    terminal = os.isatty(to)
    whole = terminal or development
    out.setFormatter(
        lazily(lambda: Lines(longest_first, Looks(as_json=as_json, colors=terminal, whole=whole)))
    )
    logging.getLogger("answerback.builders").setLevel("INFO" if whole else "CRITICAL")
    root = logging.getLogger()
    root.handlers[:] = [out]
    root.setLevel(logging.WARNING)
    logging.getLogger("answerback").setLevel(level.upper())
    if foreign:
        send_structlog()
    logging.captureWarnings(True)
    sys.excepthook = _unhandled
    sys.unraisablehook = lambda found: _log.error(
        "an error that could not be raised", exc_info=found.exc_value
    )
    threading.excepthook = _unhandled_in_thread


def report_from_loop(_loop: asyncio.AbstractEventLoop, found: dict[str, Any]) -> None:
    """Log an error that an event loop reports, as its exception handler. The loop's own message is
    replaced by a fixed one, because it quotes arguments of callbacks."""
    said = str(found.get("message", ""))
    what = next((known for known in _LOOP_SAYS if said.startswith(known)), "Error in the loop")
    task = found.get("task") or found.get("future")
    name = task.get_name() if isinstance(task, asyncio.Task) else None
    _log.error("%s%s", what, f", task {name}" if name else "", exc_info=found.get("exception"))


def _unhandled(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    _log.critical("ended by an error that nobody handled", exc_info=(kind, error, trace))


def _unhandled_in_thread(found: threading.ExceptHookArgs) -> None:
    if found.exc_value is not None and not isinstance(found.exc_value, SystemExit):
        _log.error("a thread ended by an error that nobody handled", exc_info=found.exc_value)


class _Out(logging.Handler):
    """Hands lines to a thread that writes them, so that a reader of the log who stops reading
    blocks nobody. A record that can't be formatted is lost: a line says so, without its
    arguments."""

    def __init__(self, file: int) -> None:
        super().__init__()
        self._file = file
        self._lines: queue.Queue[str] = queue.Queue(_WAITING)
        self._dropped = 0
        self._writer: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception as error:  # noqa: BLE001 - the edge of the log: who wrote it goes on
            kind = type(error).__name__
            line = f"a line of {record.name} (line {record.lineno}) was lost: {kind}"
        if self._writer is None:
            self._writer = threading.Thread(target=self._write, name="log", daemon=True)
            self._writer.start()
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._dropped += 1

    def flush(self) -> None:
        """Wait until all lines are written, for a second at most."""
        done = self._lines.all_tasks_done
        with done:
            done.wait_for(lambda: not self._lines.unfinished_tasks, _LAST_LINES)

    def _write(self) -> None:
        told = 0
        while True:
            lines = [self._lines.get()]
            # All in one write: after each one the thread has to wait for the interpreter again.
            lines += [self._lines.get() for _ in range(self._lines.qsize())]
            taken = len(lines)
            if lost := self._dropped - told:
                told += lost
                lines.append(self.format(_dropped(lost)))
            self._send("\n".join(lines))
            for _ in range(taken):
                self._lines.task_done()

    def _send(self, lines: str) -> None:
        # Not through Python's buffered stream: a thread blocked in one keeps the process from
        # ending.
        left = f"{lines}\n".encode("utf-8", "backslashreplace")
        with suppress(OSError):
            while left:
                try:
                    left = left[os.write(self._file, left) :]
                except BlockingIOError:
                    select.select([], [self._file], [])


def _dropped(lines: int) -> logging.LogRecord:
    said = "%d lines were dropped: nobody read the log"
    return _log.makeRecord(_log.name, logging.WARNING, "", 0, said, (lines,), None)
