"""The formatter of log lines: it orders the fields, reduces an exception to the parts that may be
told, and scrubs every text, so that no caller has to think of it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from structlog.stdlib import BoundLogger, ExtraAdder, LoggerFactory, ProcessorFormatter
from structlog.typing import EventDict, Processor, WrappedLogger

from bot.domain.errors import ForOperators
from bot.observability.context import fields, holder
from bot.observability.faults import Fault, whole
from bot.observability.redaction import causes, explain, frames, scrub, without

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
"""Our fields of a line, in the order in which they are written."""

_AS_THEY_ARE = frozenset(OUR_FIELDS) - {"event", "error", "causes", "exception"}
"""Fields that are not scrubbed: only we fill them, with names and numbers of ours."""


def send_structlog() -> None:
    """Send lines that are logged by structlog to the standard library's loggers, and so to ours."""
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


@dataclass(frozen=True, slots=True)
class Looks:
    """The form of lines. `whole`: an agent's exceptions are shown as Python prints them."""

    as_json: bool
    colors: bool
    whole: bool


class Lines(ProcessorFormatter):
    """Formats a record as a line of JSON, or as one for people."""

    def __init__(self, secrets: tuple[str, ...], looks: Looks) -> None:
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
        """Put the fields first with which every line begins."""
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
        """Replace an exception by fields that describe it. A stack (`stack_info`) is dropped."""
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
        """The fields for an exception out of a builder's code. A line for people that shows it
        whole has no other field, so that nothing is said twice. Errors of our own need neither a
        traceback nor frames."""
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
