"""JSON of a platform's, read without trusting its shape: a part that is missing or odd reads as
empty."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from bot.domain.message import LONGEST_TITLE, clean, one_line

_DIGITS = re.compile("[0-9]{1,9}")

Raw = Mapping[str, object]
"""A JSON object as it came."""


def obj(raw: Raw, key: str) -> Raw:
    """An object, or an empty one."""
    value = raw.get(key)
    return value if isinstance(value, Mapping) else {}


def objs(raw: Raw, key: str) -> list[Raw]:
    """The objects of an array."""
    value = raw.get(key)
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [item for item in value if isinstance(item, Mapping)]


def string(raw: Raw, key: str) -> str:
    """A string that can be stored, or an empty one. UTF-16 offsets into it stay right."""
    value = raw.get(key)
    return clean(value) if isinstance(value, str) else ""


def title(raw: Raw, key: str) -> str:
    """A string as it may stand in a description in brackets."""
    return one_line(string(raw, key), LONGEST_TITLE)


def integer(raw: Raw, key: str) -> int | None:
    """An integer of at most 63 bits."""
    value = raw.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 63:
        return None
    return value


def whole(raw: Raw, key: str) -> int | None:
    """An integer of any size, be it written as a string of a few digits."""
    value = raw.get(key)
    if isinstance(value, str):
        return int(value) if _DIGITS.fullmatch(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag(raw: Raw, key: str) -> bool:
    return raw.get(key) is True


def timestamp(raw: Raw, key: str) -> float | None:
    """A time in epoch seconds; None for none, and for the 0 of an inaccessible message."""
    value = integer(raw, key)
    return float(value) if value is not None and 0 < value < 1 << 40 else None


def shown_number(raw: Raw, key: str) -> str:
    """A number as it is shown, or an empty string."""
    value = raw.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return repr(value) if isinstance(value, float) or abs(value) < 1 << 63 else ""


def joined(*parts: str, by: str = " ") -> str:
    """The parts that are not empty, joined."""
    return by.join(part for part in parts if part)
