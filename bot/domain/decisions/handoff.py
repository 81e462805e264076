"""The handoff: an agent asks for a person, and the chat is theirs until it is given back."""

from __future__ import annotations

from typing import Final, assert_never

from bot.domain.ending import Cause, Close, Ending

LONGEST_REASON: Final = 1000
"""Characters that are kept of an agent's reason."""


def hands_over(end: Close) -> bool:
    """Tell whether a run whose agent asked for a person gives its chat to one by this end: not if
    somebody wanted it stopped, a person was there already, or nothing can be said in the chat."""
    match end.ending:
        case Ending.ANSWERED:
            return end.cause is Cause.DELIVERED
        case Ending.UNCERTAIN | Ending.SILENT:
            return True
        case Ending.UNDELIVERABLE:
            return end.cause is Cause.REFUSED
        case (
            Ending.APOLOGISED | Ending.FAILED | Ending.WITHDRAWN | Ending.CANCELLED | Ending.EXPIRED
        ):
            return False
        case other:
            assert_never(other)
