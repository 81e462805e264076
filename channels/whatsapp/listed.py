"""A message as Twilio's own records show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from bot.domain.message import clean


@dataclass(frozen=True, slots=True)
class Listed:
    """One Message resource. `created` in epoch seconds, None when it is not told."""

    sid: str
    direction: str
    origin: str
    target: str
    body: str
    status: str
    error_code: str
    media_count: int
    created: float | None

    @classmethod
    def of(cls, resource: Mapping[str, object]) -> Listed:
        """Read a resource; what is missing or of another type counts as empty."""
        return cls(
            sid=_text(resource, "sid"),
            direction=_text(resource, "direction"),
            origin=_text(resource, "from"),
            target=_text(resource, "to"),
            body=_text(resource, "body"),
            status=_text(resource, "status"),
            error_code=_text(resource, "error_code"),
            media_count=_count(_text(resource, "num_media")),
            created=_instant(_text(resource, "date_created")),
        )


def _text(resource: Mapping[str, object], field: str) -> str:
    value = resource.get(field)
    return clean(str(value)) if isinstance(value, str | int) else ""


def _count(value: str) -> int:
    return int(value) if value.isascii() and value.isdigit() and len(value) < 4 else 0


def _instant(value: str) -> float | None:
    """Epoch seconds of an RFC 2822 date."""
    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
