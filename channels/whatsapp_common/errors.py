"""The form of a provider's table of errors: each one's proof about a send, and the reaction to it
in a status.

A code that is not in the table counts as failed and is listed; it is never a reason to send
again. The reasons are ours: the providers' own messages name telephone numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import assert_never

from bot.domain.delivery import (
    ChannelDown,
    LateRefusal,
    LimitOf,
    NotSent,
    Outcome,
    Refused,
    Scope,
    Unknown,
)

LONGEST_WAIT = 86_400.0
"""Seconds; a longer `Retry-After` is not believed."""
RESEND_WAIT = 30.0
"""Seconds before a message that was reported as not delivered goes once more."""


class Proof(Enum):
    """The evidence of an error answer to a send, where that is no refusal in some `Scope`."""

    NOT_SENT = auto()
    DOWN = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table. `wait` is in seconds, used where the provider names no time; `limit`
    counts where nothing was sent."""

    proof: Proof | Scope
    reaction: LateRefusal
    why: str
    wait: float | None = None
    limit: LimitOf = LimitOf.UNTOLD

    def outcome(self, code: str, retry_after: float | None) -> Outcome:
        """The outcome of a send that was answered so; `retry_after` in seconds."""
        match self.proof:
            case Proof.NOT_SENT:
                wait = self.wait if retry_after is None else retry_after
                return NotSent(self.why, code, wait, limited=self.limit)
            case Proof.DOWN:
                return ChannelDown(self.why, code)
            case Proof.UNKNOWN:
                return Unknown(self.why, code)
            case Scope() as scope:
                return Refused(scope, self.why, code)
            case _:
                assert_never(self.proof)


class ErrorTable:
    """The rules of one provider by its codes. Codes are digits, empty for none."""

    def __init__(self, provider: str, rows: Iterable[tuple[Sequence[int], Rule]]) -> None:
        self.provider = provider
        self.rules = {code: rule for codes, rule in rows for code in codes}

    def rule(self, code: str) -> Rule | None:
        return self.rules.get(int(code)) if code.isascii() and code.isdigit() else None

    def reaction(self, code: str) -> LateRefusal:
        """The reaction that a status with this error code asks for."""
        rule = self.rule(code)
        return rule.reaction if rule else LateRefusal.UNKNOWN

    def resend_after(self, code: str) -> float:
        """Seconds to wait before the one more send that RESEND_ONCE allows."""
        rule = self.rule(code)
        return rule.wait if rule and rule.wait is not None else RESEND_WAIT

    def explain(self, code: str) -> str:
        """One sentence for the operator, without anything personal."""
        rule = self.rule(code)
        return f"{rule.why} ({code})" if rule else f"{self.provider} reports code {code or 'none'}"


def retry_after_seconds(value: str, now: float) -> float | None:
    """A `Retry-After` header as seconds from `now` (epoch seconds); None when it says nothing."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), LONGEST_WAIT)
    try:
        when = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(when - now, 0.0), LONGEST_WAIT)
