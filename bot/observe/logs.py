"""Logs: one line an event; no message text, no token, no whole phone number."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable

# Write URLs with the token, or texts, at INFO or DEBUG.
_CHATTY = (
    "httpcore",
    "httpx",
    "telegram",
    "twilio",
    "twilio.http_client",
    "urllib3",
    "asyncio",
    "apscheduler",
    "sqlalchemy",
    "alembic",
    "uvicorn",
    "openai",
    "anthropic",
)
_TOKEN = re.compile(r"\b\d{5,20}:[A-Za-z0-9_-]{20,}")
_PHONE = re.compile(r"\+\d{4,}(\d{2})\b")


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without tokens and whole phone numbers."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return _PHONE.sub(r"+…\1", _TOKEN.sub("<token>", text))


class _Scrubbed(logging.Formatter):
    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s  %(message)s")
        self._secrets = tuple(s for s in secrets if s)

    def format(self, record: logging.LogRecord) -> str:
        return scrub(super().format(record), self._secrets)


class _Json(_Scrubbed):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return scrub(json.dumps(line, ensure_ascii=False), self._secrets)


def set_up_logs(level: str, *, as_json: bool, secrets: Iterable[str]) -> None:
    """Log to standard error. Libraries that would print a token or a text stay quiet."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json(secrets) if as_json else _Scrubbed(secrets))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("answerback").setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
