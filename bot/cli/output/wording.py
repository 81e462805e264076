"""Values as an operator reads them: safe for any terminal, short, in one form everywhere."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime

TO_BEGIN = "`answerback chat` tries the agent, `answerback doctor` says what keeps messages away"
"""The next thing to do where nobody wrote yet."""
_JOINERS = "\u200c\u200d"
"""Needed inside emoji and in several scripts; they move nothing around them."""
_ACTING = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def safe(text: str, *, lines: bool = False) -> str:
    """The text with everything spelled out that could move the cursor, change a colour or
    turn the direction of writing. With `lines` line breaks and tabs stay."""
    stays = _JOINERS + "\n\t" if lines else _JOINERS
    return "".join(
        c if c in stays or unicodedata.category(c) not in _ACTING else _spelled(c) for c in text
    )


def _spelled(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x1_0000 else f"\\U{number:08x}"


_NAMES_A_NUMBER = re.compile(r"\bwamid\.[\w+/=-]{7,}")
"""A name of WhatsApp's for a message: it holds the phone number, in base64."""


def without_numbers(text: str) -> str:
    """The text with all but the ends of names that hold a phone number left out."""
    return _NAMES_A_NUMBER.sub(lambda name: f"wamid.…{name[0][-6:]}", text)


def moment(epoch: float) -> str:
    """Epoch seconds in ISO 8601, UTC, as programs read them."""
    stamp = datetime.fromtimestamp(epoch, UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")
