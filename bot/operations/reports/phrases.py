"""Times, counts and foreign words as people read them: one form for each."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_DAY = 86_400.0
_JOINERS = "\u200c\u200d"
"""Needed inside emoji and in several scripts; they move nothing around them."""
_ACTING = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def span(seconds: float) -> str:
    """An age or a wait, in the two units that say enough."""
    return _told(seconds, 2)


def when(at: float, now: float) -> str:
    """A moment in epoch seconds: by the clock (UTC), with its date unless it is less than a day
    away, and about how far from `now`."""
    stamp = datetime.fromtimestamp(at, UTC)
    near = abs(at - now) < _DAY
    clock = f"{stamp:%H:%M:%S}Z" if near else f"{stamp:%Y-%m-%d %H:%M}Z"
    return f"{clock} ({_told(now - at, 1)} ago)" if at <= now else f"{clock} (in {span(at - now)})"


def counted(count: int, noun: str) -> str:
    """So many of these."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def safe(text: str, *, lines: bool = False) -> str:
    """The text with everything spelled out that could move the cursor, change a colour or
    turn the direction of writing. With `lines` line breaks and tabs stay."""
    if text.isprintable():
        return text  # Nothing of the sort is: most texts by far are told in one look.
    stays = _JOINERS + "\n\t" if lines else _JOINERS
    return "".join(
        c if c in stays or unicodedata.category(c) not in _ACTING else _spelled(c) for c in text
    )


def _spelled(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x1_0000 else f"\\U{number:08x}"


def _told(seconds: float, units: int) -> str:
    """The largest unit that is there, and as many of the next smaller ones as `units` says."""
    left = max(0, round(seconds))
    first = next((at for at, (_, size) in enumerate(_UNITS) if left >= size), len(_UNITS) - 1)
    told: list[str] = []
    for unit, size in _UNITS[first : first + units]:
        if left >= size or not told:
            told.append(f"{left // size} {unit}")
        left %= size
    return " ".join(told)
