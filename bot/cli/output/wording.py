"""Values as an operator reads them: safe for any terminal, short, in one form everywhere."""

from __future__ import annotations

from datetime import UTC, datetime

TO_BEGIN = "`answerback chat` tries the agent, `answerback doctor` says what keeps messages away"
"""Advice for an empty list: nobody has written yet."""


def moment(epoch: float) -> str:
    """Epoch seconds in ISO 8601, UTC, as programs read them."""
    stamp = datetime.fromtimestamp(epoch, UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")
