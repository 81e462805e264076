"""Logs: one line an event, on standard error; `docs/logs.md` lists the words kept out of them.

Everything comes out through one formatter: our loggers, those of libraries, structlog's, and
errors that nobody handled. It decides what is told of an exception and scrubs the rest, so
that no caller has to think of it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import select
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import structlog
from structlog.stdlib import BoundLogger, ExtraAdder, LoggerFactory, ProcessorFormatter
from structlog.typing import EventDict, Processor, WrappedLogger

from bot.domain.errors import ForOperators
from bot.observability.context import fields, holder
from bot.observability.faults import Fault, whole
from bot.observability.redaction import causes, explain, frames, scrub, without

_STANDARD_ERROR = 2
_WAITING = 1_000
"""Lines that may wait for a reader of the log; those beyond them are dropped and counted."""
_LAST_LINES = 1.0
"""Seconds for which the end of the process waits for them."""

_log = logging.getLogger("answerback")

OUR_FIELDS = (
    "at",
    "level",
    "logger",
    "event",
    "holder",
    "run",
    "chat",
    "request_id",
    "account",
    "channel",
    "attempt",
    "part",
    "error",
    "causes",
    "frames",
    "exception",
    "trace_id",
)
"""The fields of a line, in their order."""

_AS_THEY_ARE = frozenset(OUR_FIELDS) - {"event", "error", "causes", "exception"}
"""Fields that only we fill, with names and numbers of ours."""

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
) -> None:
    """Log from `level` on, and what libraries say from WARNING on (they would print texts
    and URLs with tokens below it), to a file by its number. `secrets` are never printed,
    wherever they come from. An agent's exceptions are shown whole on a terminal and where
    somebody develops; only there builders are told of what is no fault but looks like one."""
    out = _Out(to)
    longest_first = tuple(sorted(secrets, key=len, reverse=True))
    terminal = os.isatty(to)
    looks = _Looks(as_json=as_json, colors=terminal, whole=terminal or development)
    out.setFormatter(_Lines(longest_first, looks))
    logging.getLogger("answerback.builders").setLevel("INFO" if looks.whole else "CRITICAL")
    root = logging.getLogger()
    root.handlers[:] = [out]
    root.setLevel(logging.WARNING)
    logging.getLogger("answerback").setLevel(level.upper())
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=BoundLogger,
        logger_factory=LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    logging.captureWarnings(True)
    sys.excepthook = _unhandled
    sys.unraisablehook = lambda found: _log.error(
        "an error that could not be raised", exc_info=found.exc_value
    )
    threading.excepthook = _unhandled_in_thread


def report_from_loop(_loop: asyncio.AbstractEventLoop, found: dict[str, Any]) -> None:
    """An event loop's exception handler: its own words quote what callbacks were given."""
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
    """Hands lines to a thread that writes them: a reader of the log who stops reading stops
    nobody else. One that can't be written is lost, and its arguments are not shown."""

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
        """Wait a moment until what was said is written."""
        done = self._lines.all_tasks_done
        with done:
            done.wait_for(lambda: not self._lines.unfinished_tasks, _LAST_LINES)

    def _write(self) -> None:
        told = 0
        while True:
            lines = [self._lines.get()]
            # All at once: each write costs a wait for the interpreter.
            lines += [self._lines.get() for _ in range(self._lines.qsize())]
            taken = len(lines)
            if lost := self._dropped - told:
                told += lost
                lines.append(self.format(_dropped(lost)))
            self._send("\n".join(lines))
            for _ in range(taken):
                self._lines.task_done()

    def _send(self, lines: str) -> None:
        # Past Python's own buffer: a thread that waits in that one keeps the process from ending.
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


@dataclass(frozen=True, slots=True)
class _Looks:
    """The form of lines. `whole`: with an agent's exceptions as Python prints them."""

    as_json: bool
    colors: bool
    whole: bool


class _Lines(ProcessorFormatter):
    """A record as a line of JSON, or as one for people."""

    def __init__(self, secrets: tuple[str, ...], looks: _Looks) -> None:
        self._secrets = secrets
        self._looks = looks
        render: Processor = (
            structlog.processors.JSONRenderer(ensure_ascii=False)
            if looks.as_json
            else structlog.dev.ConsoleRenderer(
                colors=looks.colors, sort_keys=False, timestamp_key="at", pad_event_to=0
            )
        )
        super().__init__(
            foreign_pre_chain=[ExtraAdder()],
            processors=[
                _with_fields,
                self._frame,
                self._fault,
                self.remove_processors_meta,
                self._scrubbed,
                render,
            ],
        )

    def format(self, record: logging.LogRecord) -> str:
        record = copy(record)
        if isinstance(record.msg, BaseException):
            record.msg = explain(record.msg)
        match record.args:
            case tuple():
                record.args = tuple(map(_told, record.args))
            case Mapping():
                record.args = {key: _told(value) for key, value in record.args.items()}
            case None:
                pass
        return super().format(record)

    def _frame(self, _logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
        """The fields that every line begins with."""
        record: logging.LogRecord = event["_record"]
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        first = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": event.pop("event", ""),
        }
        if name := holder():
            first["holder"] = name
        return {**first, **event}

    def _fault(self, _logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
        """The exception as fields; a stack that was asked for is left out."""
        event.pop("stack_info", None)
        fault = event.pop("fault", None)
        if isinstance(fault, Fault):
            event.update(self._of_agent(fault))
        found = event.pop("exc_info", None)
        if found is True:
            found = sys.exception()
        if isinstance(found, tuple):
            found = found[1]
        if isinstance(found, BaseException):
            event["error"] = explain(found)
            if led := " < ".join(causes(found)):
                event["causes"] = led
            if places := frames(found):
                event["frames"] = places
        return event

    def _of_agent(self, fault: Fault) -> dict[str, str]:
        """An exception out of a builder's code. For people nothing is said twice, and our own
        errors say it all."""
        ours = isinstance(fault.error, ForOperators)
        shown = {"exception": whole(fault.error)} if self._looks.whole and not ours else {}
        if shown and not self._looks.as_json:
            return shown
        frames = "" if ours else fault.places
        told = {"error": fault.said, "causes": fault.causes, "frames": frames, **shown}
        return {key: value for key, value in told.items() if value}

    def _scrubbed(self, _logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
        ordered = [key for key in OUR_FIELDS if key in event]
        ordered += [key for key in event if key not in OUR_FIELDS]
        return {
            str(key): event[key] if key in _AS_THEY_ARE else self._plain(key, event[key])
            for key in ordered
        }

    def _plain(self, key: str, value: object) -> object:
        if key == "exception":
            return without(str(value), self._secrets)
        if value is None or isinstance(value, bool | float):
            return value
        told = _told(value)
        if isinstance(told, int) and abs(told) < 10_000_000:
            return told
        return scrub(str(told), self._secrets)


def _with_fields(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    return {**fields(), **event}


def _told(value: object) -> object:
    return explain(value) if isinstance(value, BaseException) else value
