"""The table of Twilio's errors: each one's proof about a send, and the reaction to it in a status.

The table follows Twilio's error dictionary and its map of WhatsApp errors. A code that is
not in it counts as failed and is listed; it is never a reason to send again. The reasons
are ours: Twilio's own messages name telephone numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import assert_never

from bot.domain.delivery import (
    ChannelDown,
    LateRefusal,
    NotSent,
    Outcome,
    Refused,
    Scope,
    Unknown,
)

LONGEST_WAIT = 86_400.0
"""Seconds; a longer `Retry-After` is not believed."""


class Proof(Enum):
    """The evidence of an error answer to a create, where that is no refusal in some `Scope`."""

    NOT_SENT = auto()
    DOWN = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table. `wait` is in seconds, used where Twilio names no time."""

    proof: Proof | Scope
    callback: LateRefusal
    why: str
    wait: float | None = None


_P, _S, _C = Proof, Scope, LateRefusal

_ROWS: tuple[tuple[tuple[int, ...], Rule], ...] = (
    ((20003, 20005, 20006), Rule(_P.DOWN, _C.ACCOUNT_DOWN, "the account or its token is refused")),
    ((20404,), Rule(_P.DOWN, _C.ACCOUNT_DOWN, "the account is not found")),
    ((20429,), Rule(_P.NOT_SENT, _C.RESEND_ONCE, "too many requests")),
    ((20500, 20503), Rule(_P.UNKNOWN, _C.UNKNOWN, "an error inside Twilio")),
    ((21211, 21217, 21604, 21612, 21614),
     Rule(_S.CHAT, _C.PERMANENT_CHAT, "the person's address can't be reached")),
    ((21408,), Rule(_S.CHAT, _C.CONFIGURATION, "sending to this region is not enabled")),
    ((21212, 21603, 21606, 21910, 63001, 63007, 63008),
     Rule(_P.DOWN, _C.ACCOUNT_DOWN, "the sender is not set up for WhatsApp")),
    ((21609,), Rule(_P.DOWN, _C.ACCOUNT_DOWN, "the status callback URL is refused")),
    ((21610,), Rule(_S.CONSENT, _C.OPTED_OUT, "the person opted out")),
    ((21617,), Rule(_S.PAYLOAD, _C.PERMANENT_PAYLOAD, "the text is too long")),
    ((11751, 12300, 21620, 21623, 63005, 63006, 63019, 63021, 63030, 63034),
     Rule(_S.PAYLOAD, _C.PERMANENT_PAYLOAD, "the file or the content is refused")),
    ((21611, 30001), Rule(_P.NOT_SENT, _C.RESEND_ONCE, "the sender's queue is full", 60.0)),
    ((21655, 21656, 63027, 63028, 63040, 63041, 63042),
     Rule(_S.WINDOW, _C.CONFIGURATION, "the template is refused")),
    ((30002,), Rule(_P.DOWN, _C.ACCOUNT_DOWN, "the account is suspended")),
    ((30008,), Rule(_P.UNKNOWN, _C.RESEND_ONCE, "an unknown error of the carrier", 30.0)),
    ((30410,), Rule(_P.UNKNOWN, _C.RESEND_ONCE, "the provider timed out", 30.0)),
    ((63003, 63024), Rule(_S.CHAT, _C.PERMANENT_CHAT, "the person is not on WhatsApp")),
    ((63009, 63010, 63012), Rule(_P.UNKNOWN, _C.RESEND_ONCE, "an error inside WhatsApp", 30.0)),
    ((63013,), Rule(_S.PAYLOAD, _C.PERMANENT_PAYLOAD, "the message is against a policy")),
    ((63014, 63033), Rule(_S.CHAT, _C.PERMANENT_CHAT, "the person blocked the sender")),
    ((63015,), Rule(_S.CHAT, _C.PERMANENT_CHAT, "the person has not joined the sandbox")),
    ((63016,), Rule(_S.WINDOW, _C.WINDOW, "window closed: the last word is over 24 hours old")),
    ((63017, 63018), Rule(_P.NOT_SENT, _C.RESEND_ONCE, "WhatsApp's rate limit", 30.0)),
    ((63032,), Rule(_S.PAYLOAD, _C.PERMANENT_PAYLOAD, "WhatsApp keeps it from this person")),
    ((63037,), Rule(_P.UNKNOWN, _C.NONE, "the file is uploaded again by Twilio")),
    ((63038,), Rule(_P.NOT_SENT, _C.RESEND_ONCE, "the daily limit is used up", 3600.0)),
    ((63049,), Rule(_S.PAYLOAD, _C.PERMANENT_PAYLOAD, "WhatsApp limits templates to this person")),
    ((63051,), Rule(_P.DOWN, _C.ACCOUNT_DOWN, "WhatsApp locked the business account")),
    ((63062,), Rule(_S.WINDOW, _C.CONFIGURATION, "the terms for marketing are not accepted")),
)  # fmt: skip

RULES: dict[int, Rule] = {code: rule for codes, rule in _ROWS for code in codes}


def outcome_of_code(status: int, code: int | None, retry_after: float | None = None) -> Outcome:
    """The outcome of an error answer to a create; `retry_after` in seconds.

    429 was never processed, whatever its code; 5xx may have been, whatever its code.
    """
    rule = RULES.get(code or 0)
    shown = str(code or status)
    if status == 429:
        wait = retry_after if retry_after is not None else rule.wait if rule else None
        return _limited(rule.why if rule else "too many requests", shown, wait)
    if not 400 <= status < 500 or status == 408:
        return Unknown(f"Twilio answered with status {status}", shown)
    if rule is not None:
        return _outcome(rule, shown, retry_after)
    if status in (401, 403, 404):
        return ChannelDown(f"Twilio refuses the account with status {status}", shown)
    return Refused(Scope.PAYLOAD, f"Twilio refused it with code {shown}", shown)


_OF_THE_ACCOUNT = frozenset({"20429", "63018", "63038"})
"""Codes of limits that hold for every chat of the account."""


def _limited(why: str, code: str, wait: float | None) -> NotSent:
    return NotSent(why, code, wait, limited=True, account=code in _OF_THE_ACCOUNT)


def _outcome(rule: Rule, code: str, retry_after: float | None) -> Outcome:
    match rule.proof:
        case Proof.NOT_SENT:
            return _limited(rule.why, code, rule.wait if retry_after is None else retry_after)
        case Proof.DOWN:
            return ChannelDown(rule.why, code)
        case Proof.UNKNOWN:
            return Unknown(rule.why, code)
        case Scope() as scope:
            return Refused(scope, rule.why, code)
        case _:
            assert_never(rule.proof)


def _rule_of(code: str) -> Rule | None:
    return RULES.get(int(code)) if code.isascii() and code.isdigit() else None


def reaction_to_callback(code: str) -> LateRefusal:
    """The reaction that a status with this error code (digits, empty for none) asks for."""
    rule = _rule_of(code)
    return rule.callback if rule else LateRefusal.UNKNOWN


def resend_after(code: str) -> float:
    """Seconds to wait before the one more send that RESEND_ONCE allows."""
    rule = _rule_of(code)
    return rule.wait if rule and rule.wait is not None else 30.0


def explain(code: str) -> str:
    """One sentence for the operator, without anything personal."""
    rule = _rule_of(code)
    return f"{rule.why} ({code})" if rule else f"Twilio reports code {code or 'none'}"


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
