"""Meta's errors: each one's proof about a send, and the reaction to it in a status.

The code decides; HTTP's status only where there is none that we know, and Meta's titles never.
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

PAIR_LIMIT = "131056"
_LONGEST_PAIR_WAIT = 256.0
"""Seconds: about what the largest burst to one person borrows from the time after it."""

_P, _S, _C = Proof, Scope, LateRefusal


def _down(why: str) -> Rule:
    return Rule(_P.DOWN, _C.ACCOUNT_DOWN, why)


def _ours(why: str) -> Rule:
    return Rule(_S.PAYLOAD, _C.PERMANENT_PAYLOAD, why)


def _slower(why: str, wait: float, limit: LimitOf = LimitOf.ACCOUNT) -> Rule:
    return Rule(_P.NOT_SENT, _C.RESEND_ONCE, why, wait, limit)


TABLE = ErrorTable("Meta", (
    ((0, 190), _down("the token is dead: make one of a system user that does not expire, set "
                     "META_ACCESS_TOKEN and restart")),
    ((3, 10, 131005, *range(200, 300)),
     _down("a permission is missing: give the token's system user the WhatsApp account, with "
           "whatsapp_business_messaging and whatsapp_business_management")),
    ((33,), _down("there is no such number for this token: compare META_PHONE_NUMBER_ID")),
    ((133010, 131045),
     _down("the number is not registered: register it in WhatsApp Manager")),
    ((368, 131031, 131064),
     _down("the account is restricted: see Meta's Business Support Home")),
    ((131042,), _down("the payment is not settled: see the billing of the WhatsApp account in "
                      "Meta's Business Settings")),
    ((131037,), _down("the display name is not approved: see the number in WhatsApp Manager")),
    ((1, 2, 131000, 131016, 133004), Rule(_P.UNKNOWN, _C.RESEND_ONCE, "an error inside Meta")),
    ((131057,), _slower("the number is being upgraded", 30.0)),
    ((4, 80007), _slower("too many calls of the account", 60.0)),
    ((130429,), _slower("the number's throughput is used up", 5.0)),
    ((131048,),
     _slower("people report the number as spam: see its quality in WhatsApp Manager", 3600.0)),
    ((131056,), _slower("too many messages to this person", 6.0, LimitOf.CHAT)),
    ((131047,), Rule(_S.WINDOW, _C.WINDOW, "window closed: the last word is over 24 hours old")),
    ((131026,), Rule(_S.CHAT, _C.PERMANENT_CHAT, "the person can't be reached on WhatsApp")),
    ((130403,), Rule(_S.CHAT, _C.PERMANENT_CHAT, "the number blocked this person")),
    ((130497,), Rule(_S.CHAT, _C.CONFIGURATION, "the number may not write to this country")),
    ((131030,), Rule(_S.CHAT, _C.CONFIGURATION,
                     "a test number writes only to the people on its list in the app's API Setup")),
    ((131062,), Rule(_S.CHAT, _C.CONFIGURATION, "this message needs the person's phone number")),
    ((130472, 131049, 131050, 131063), _ours("WhatsApp keeps this template from this person")),
    ((100, 131008, 131009, 131021, 131051, 135000), _ours("Meta takes the request for wrong")),
    ((131052, 131053), _ours("the file is refused")),
    ((*range(132000, 132017), 132018, 132068, 132069),
     Rule(_S.WINDOW, _C.CONFIGURATION, "the template is refused")),
    ((137000,), _ours("the person's identity changed")),
    ((131020, 131041, *range(131200, 131300)), _ours("the group refuses it")),
))  # fmt: skip


def outcome_of(
    status: int, code: int | None, wait: float | None, attempt: int, jitter: float
) -> Outcome:
    """The outcome of an error answer to a send. `wait` are the seconds that Meta asks for, if it
    does, `attempt` the number of this one, from 1; `jitter` is in [0, 1)."""
    shown = str(status if code is None else code)
    rule = None if code is None else TABLE.rules.get(code)
    if rule is None:
        return _unlisted(status, code, shown, wait)
    if shown == PAIR_LIMIT:
        # Meta's own rule: four times as long after each refusal.
        wait = min(4.0 ** (attempt - 1), _LONGEST_PAIR_WAIT) * (1 + jitter / 4)
    return rule.outcome(shown, wait)


def _unlisted(status: int, code: int | None, shown: str, wait: float | None) -> Outcome:
    if status == 429:
        return NotSent("too many requests", shown, wait, LimitOf.UNTOLD)
    if not 400 <= status < 500 or status == 408:
        return Unknown(f"Meta answered with status {status}", shown)
    if code is None and status in (401, 403, 404):
        return ChannelDown(f"Meta refuses the number with status {status}", shown)
    return Refused(Scope.PAYLOAD, f"Meta refused it with code {shown}", shown)
