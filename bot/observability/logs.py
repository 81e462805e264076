"""Logs: one line an event, on standard error; what is never in them is in `docs/logs.md`.

Everything comes out through one formatter: our loggers, those of libraries, structlog's, and
errors that nobody handled. It decides what is told of an exception and scrubs the rest, so
that no caller has to think of it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import copy
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

import structlog
from structlog.contextvars import merge_contextvars
from structlog.stdlib import BoundLogger, ExtraAdder, LoggerFactory, ProcessorFormatter
from structlog.typing import EventDict, Processor, WrappedLogger

from bot.observability.context import holder
from bot.observability.redaction import causes, explain, frames, scrub

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
    "trace_id",
)
"""The fields of a line, in their order."""

_AS_THEY_ARE = frozenset(OUR_FIELDS) - {"event", "error", "causes"}
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
    level: str, *, as_json: bool, secrets: Iterable[str], to: TextIO | None = None
) -> None:
    """Log from `level` on, and what libraries say from WARNING on (they would print texts
    and URLs with tokens below it). `secrets` are never printed, wherever they come from."""
    stream = sys.stderr if to is None else to
    lines = _Lines(tuple(sorted(secrets, key=len, reverse=True)), stream, as_json=as_json)
    out = _Out(stream)
    out.setFormatter(lines)
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


class _Out(logging.StreamHandler[TextIO]):
    """Writes lines. One that can't be written is lost, and its arguments are not shown."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        error = sys.exception()
        with suppress(OSError, ValueError):
            self.stream.write(
                f"a line of {record.name} (line {record.lineno}) was lost: {type(error).__name__}\n"
            )


class _Lines(ProcessorFormatter):
    """A record as a line of JSON, or as one for people."""

    def __init__(self, secrets: tuple[str, ...], stream: TextIO, *, as_json: bool) -> None:
        self._secrets = secrets
        render: Processor = (
            structlog.processors.JSONRenderer(ensure_ascii=False)
            if as_json
            else structlog.dev.ConsoleRenderer(
                colors=stream.isatty(), sort_keys=False, timestamp_key="at", pad_event_to=0
            )
        )
        super().__init__(
            foreign_pre_chain=[ExtraAdder()],
            processors=[
                merge_contextvars,
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

    def _scrubbed(self, _logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
        ordered = [key for key in OUR_FIELDS if key in event]
        ordered += [key for key in event if key not in OUR_FIELDS]
        return {
            str(key): event[key] if key in _AS_THEY_ARE else self._plain(event[key])
            for key in ordered
        }

    def _plain(self, value: object) -> object:
        if value is None or isinstance(value, bool | float):
            return value
        told = _told(value)
        if isinstance(told, int) and abs(told) < 10_000_000:
            return told
        return scrub(str(told), self._secrets)


def _told(value: object) -> object:
    return explain(value) if isinstance(value, BaseException) else value
