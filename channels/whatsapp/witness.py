"""Twilio's later word on a part, and the URL that makes it carry our own name. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.domain.delivery import PartState, Witness
from bot.domain.message import PayloadError
from bot.domain.ports import SendRef
from channels.whatsapp.listed import Listed

RETRIES = "#rc=5&rp=all&ct=1500&rt=4000"
"""Twilio's connection overrides: five tries on any failure, within its own 15 seconds."""

SID = re.compile(r"[A-Za-z0-9]{10,77}")
"""What we take as a message's SID: 34 characters today, and short enough for a request id."""

_LARGEST = 2**63 - 1

_STATES = {
    "sent": PartState.SENT,
    "delivered": PartState.DELIVERED,
    "partially_delivered": PartState.DELIVERED,
    "read": PartState.READ,
    "undelivered": PartState.REFUSED,
    "failed": PartState.REFUSED,
    "canceled": PartState.REFUSED,
}

OUTBOUND_STATUSES = frozenset(_STATES) | {"accepted", "queued", "scheduled", "sending"}
"""The statuses that only a message of ours can have."""


def callback_url(base: str, ref: SendRef) -> str:
    """The status URL of one attempt: the part, the attempt, and when it began. The fragment
    is for Twilio and never comes back."""
    bare = base.partition("#")[0]
    ours = f"r={ref.part}&a={ref.attempt}&t={int(ref.started_at)}"
    return f"{bare}{'&' if '?' in bare else '?'}{ours}{RETRIES}"


def parse_status(form: Mapping[str, str], query: Mapping[str, str]) -> Witness:
    """The witness in a status callback: its form, and the query of the URL it came to.

    Raises PayloadError when the form names no message.
    """
    sid = (form.get("MessageSid") or form.get("SmsSid") or "").strip()
    if not SID.fullmatch(sid):
        raise PayloadError("the status has no usable MessageSid")
    status = form.get("MessageStatus") or form.get("SmsStatus") or ""
    return _witness(
        sid,
        status,
        form.get("ErrorCode", ""),
        part=_number(query.get("r", "")),
        attempt=_number(query.get("a", "")),
        began=float(_number(query.get("t", ""))),
    )


def witness_of(row: Listed) -> Witness:
    """The same from a look at Twilio's records, which do not carry our own name."""
    return _witness(row.sid, row.status, row.error_code)


def _witness(
    sid: str, status: str, code: str, *, part: int = 0, attempt: int = 0, began: float = 0.0
) -> Witness:
    named = status.strip().lower()[:32]
    state = _STATES.get(named)
    digits = code.strip()
    shown = digits if digits.isascii() and digits.isdigit() and len(digits) <= 9 else ""
    return Witness(sid, state, named, part, attempt, shown, began)


def _number(value: str) -> int:
    """A name of ours as it rode in the URL; 0 for anything else."""
    if not (value.isascii() and value.isdigit() and len(value) <= 19):
        return 0
    number = int(value)
    return number if number <= _LARGEST else 0
