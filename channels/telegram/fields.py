"""Reading Telegram's JSON without trusting its shape: what is missing or odd reads as empty."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.domain.message import clean

Raw = Mapping[str, object]
"""A JSON object as it came."""

_COMMAND = re.compile(r"/([A-Za-z0-9_]{1,64})(?:@([A-Za-z0-9_]+))?(?=\s|$)")
_MENTION = re.compile(r"(?<![A-Za-z0-9_])@[A-Za-z0-9_]+")


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


def words(raw: Raw, key: str) -> str:
    """A string that can be stored, or an empty one. UTF-16 offsets into it stay right."""
    value = raw.get(key)
    return clean(value) if isinstance(value, str) else ""


def whole(raw: Raw, key: str) -> int | None:
    """An integer of at most 63 bits."""
    value = raw.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 63:
        return None
    return value


def flag(raw: Raw, key: str) -> bool:
    return raw.get(key) is True


def moment(raw: Raw, key: str) -> float | None:
    """A time in epoch seconds; None for none, and for the 0 of an inaccessible message."""
    value = whole(raw, key)
    return float(value) if value is not None and 0 < value < 1 << 40 else None


def decimal(raw: Raw, key: str) -> str:
    """A number as it is shown, or an empty string."""
    value = raw.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return repr(value) if isinstance(value, float) or abs(value) < 1 << 63 else ""


def joined(*parts: str, by: str = " ") -> str:
    """What is not empty, put together."""
    return by.join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Entity:
    """A marked piece of a message's text. `at` is its offset in UTF-16 code units."""

    type: str
    text: str
    at: int
    rest: str
    user_id: int | None = None


def entities(message: Raw) -> Iterator[Entity]:
    """The marked pieces of the text or caption, found by eye where Telegram sent no list."""
    name = "text" if "text" in message else "caption"
    text = words(message, name)
    key = "entities" if name == "text" else "caption_entities"
    if key not in message:
        yield from _by_eye(text)
        return
    units = text.encode("utf-16-le")
    for raw in objs(message, key):
        start, length = whole(raw, "offset"), whole(raw, "length")
        if start is None or length is None or start < 0 or length <= 0:
            continue
        end = start + length
        piece = units[2 * start : 2 * end].decode("utf-16-le", "replace")
        rest = units[2 * end :].decode("utf-16-le", "replace")
        yield Entity(words(raw, "type"), piece, start, rest, whole(obj(raw, "user"), "id"))


def _by_eye(text: str) -> Iterator[Entity]:
    command = _COMMAND.match(text)
    if command is not None:
        yield Entity("bot_command", command.group(), 0, text[command.end() :])
    for mention in _MENTION.finditer(text, command.end() if command else 0):
        yield Entity("mention", mention.group(), mention.start(), text[mention.end() :])
