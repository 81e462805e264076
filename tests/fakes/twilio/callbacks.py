"""Status callbacks: the life of a message, and the reports on it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fakes.twilio.book import Message
from tests.fakes.twilio.courier import Form
from tests.fakes.twilio.errors import ERRORS

_EVENTS = {"delivered": "DELIVERED", "read": "READ", "undelivered": "UNDELIVERED"}
_RANK = {"queued": 0, "accepted": 0, "sending": 1, "sent": 2, "delivered": 3, "read": 4}


@dataclass(frozen=True, slots=True)
class StatusPlan:
    """The fate of a message after the create call, without further ado.

    `statuses` are reported in this order, whatever it is, and may repeat; `code` goes with
    `failed` and `undelivered`. `before_answer`: all that happens before the create call is
    answered. `told` False: the resource changes and nobody is called.
    """

    statuses: tuple[str, ...] = ("sent", "delivered")
    code: int | None = None
    before_answer: bool = False
    told: bool = True

    @staticmethod
    def nothing() -> StatusPlan:
        """The message stays queued until the test reports something."""
        return StatusPlan(())

    @staticmethod
    def failing(code: int, status: str = "failed") -> StatusPlan:
        """Accepted at first, and failed later with this code."""
        return StatusPlan((status,), code)


def advance(message: Message, status: str, code: int | None, now: float) -> None:
    """Put a message into a status; an older status than it has changes nothing."""
    message.history.append(status)
    if _RANK.get(status, 9) < _RANK.get(message.status, -1):
        return
    message.status = status
    message.updated_at = now
    if status in ("sent", "delivered", "read", "undelivered") and message.sent_at is None:
        message.sent_at = now
    if code is not None:
        message.error_code = code
        message.error_message = ERRORS.get(code, (400, f"Error {code}"))[1]


def callback_form(message: Message, status: str, code: int | None) -> Form:
    """The form of one status callback."""
    fields = {
        "ChannelPrefix": "whatsapp",
        "ApiVersion": "2010-04-01",
        "MessageStatus": status,
        "SmsSid": message.sid,
        "SmsStatus": status,
        "ChannelInstallSid": "XE" + "1" * 32,
        "To": message.to,
        "From": message.from_,
        "MessageSid": message.sid,
        "AccountSid": message.account,
        "ChannelToAddress": message.to.removeprefix("whatsapp:")[:-4] + "XXXX",
    }
    if status in _EVENTS:
        fields["EventType"] = _EVENTS[status]
    if status == "sent":
        fields["StructuredMessage"] = "false"
    if code is not None:
        words = ERRORS.get(code, (400, f"Error {code}"))[1]
        fields |= {"ErrorCode": str(code), "ErrorMessage": words}
        fields["ChannelStatusMessage"] = words
    return list(fields.items())
