"""Twilio's errors: each one's proof about a send, and the reaction to it in a status.

The table follows Twilio's error dictionary and its map of WhatsApp errors.
"""

from __future__ import annotations

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
from channels.whatsapp_common.errors import ErrorTable, Proof, Rule

COPY_BOTH = (
    "copy TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN from the front page of Twilio's console, then "
    "restart"
)
_P, _S, _C, _L = Proof, Scope, LateRefusal, LimitOf

_ROWS: tuple[tuple[tuple[int, ...], Rule], ...] = (
    ((20003, 20006), Rule(_P.DOWN, _C.ACCOUNT_DOWN,
                          f"the account or its token is refused: {COPY_BOTH}")),
    ((20005,), Rule(_P.DOWN, _C.ACCOUNT_DOWN,
                    "the account is not active: see Twilio's console, then restart")),
    ((20404,), Rule(_P.DOWN, _C.ACCOUNT_DOWN,
                    "the account is not found: copy TWILIO_ACCOUNT_SID from the front page of "
                    "Twilio's console, then restart")),
    ((20429,), Rule(_P.NOT_SENT, _C.RESEND_ONCE, "too many requests", limit=_L.ACCOUNT)),
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
    ((63017,), Rule(_P.NOT_SENT, _C.RESEND_ONCE, "WhatsApp's rate limit", 30.0)),
    ((63018,), Rule(_P.NOT_SENT, _C.RESEND_ONCE, "WhatsApp's rate limit", 30.0, _L.ACCOUNT)),
    ((63032,), Rule(_S.PAYLOAD, _C.PERMANENT_PAYLOAD, "WhatsApp keeps it from this person")),
    ((63037,), Rule(_P.UNKNOWN, _C.NONE, "the file is uploaded again by Twilio")),
    ((63038,), Rule(
        _P.NOT_SENT, _C.RESEND_ONCE, "the daily limit is used up", 3600.0, _L.ACCOUNT)),
    ((63049,), Rule(_S.PAYLOAD, _C.PERMANENT_PAYLOAD, "WhatsApp limits templates to this person")),
    ((63051,), Rule(_P.DOWN, _C.ACCOUNT_DOWN, "WhatsApp locked the business account")),
    ((63062,), Rule(_S.WINDOW, _C.CONFIGURATION, "the terms for marketing are not accepted")),
)  # fmt: skip

TABLE = ErrorTable("Twilio", _ROWS)


def outcome_of_code(status: int, code: int | None, retry_after: float | None = None) -> Outcome:
    """The outcome of an error answer to a create; `retry_after` in seconds.

    429 was never processed, whatever its code; 5xx may have been, whatever its code.
    """
    rule = TABLE.rules.get(code or 0)
    shown = str(code or status)
    if status == 429:
        if rule is None:
            return NotSent("too many requests", shown, retry_after, LimitOf.UNTOLD)
        wait = rule.wait if retry_after is None else retry_after
        return NotSent(rule.why, shown, wait, rule.limit)
    if not 400 <= status < 500 or status == 408:
        return Unknown(f"Twilio answered with status {status}", shown)
    if rule is not None:
        return rule.outcome(shown, retry_after)
    if status in (401, 403, 404):
        return ChannelDown(f"Twilio refuses the account with status {status}", shown)
    return Refused(Scope.PAYLOAD, f"Twilio refused it with code {shown}", shown)
