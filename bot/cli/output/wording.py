"""Values as an operator reads them: safe for any terminal, short, in one form everywhere."""

from __future__ import annotations

import re
from datetime import UTC, datetime

TO_BEGIN = "`answerback chat` tries the agent, `answerback doctor` says what keeps messages away"
"""The next thing to do where nobody wrote yet."""

_NAMES_A_NUMBER = re.compile(r"\bwamid\.[\w+/=-]{7,}")
"""A name of WhatsApp's for a message: it holds the phone number, in base64."""


def without_numbers(text: str) -> str:
    """The text with all but the ends of names that hold a phone number left out."""
    return _NAMES_A_NUMBER.sub(lambda name: f"wamid.…{name[0][-6:]}", text)


def moment(epoch: float) -> str:
    """Epoch seconds in ISO 8601, UTC, as programs read them."""
    stamp = datetime.fromtimestamp(epoch, UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")
