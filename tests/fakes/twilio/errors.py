"""Twilio's error answers: code, HTTP status and words."""

from __future__ import annotations

from tests.fakes.faults import Answer

ERRORS: dict[int, tuple[int, str]] = {
    20001: (400, "Invalid parameter"),
    20003: (401, "Authenticate"),
    20005: (403, "Account not active"),
    20404: (404, "The requested resource was not found"),
    20429: (429, "Too Many Requests"),
    20500: (500, "Internal Server Error"),
    20503: (503, "Service unavailable"),
    21211: (400, "The 'To' number is not a valid phone number"),
    21408: (400, "Permission to send to this region is not enabled"),
    21603: (400, "A 'From' phone number is required"),
    21604: (400, "A 'To' phone number is required"),
    21606: (400, "The 'From' phone number is not valid for this account"),
    21609: (400, "The 'StatusCallback' URL is not a valid URL"),
    21610: (400, "Attempt to send to unsubscribed recipient"),
    21611: (429, "This 'From' number has exceeded the maximum number of queued messages"),
    21617: (400, "The concatenated message body exceeds the 1600 character limit"),
    21619: (400, "A text message body or media urls must be specified"),
    21620: (400, "Invalid media URL(s)"),
    21656: (400, "The ContentVariables parameter is invalid"),
    21910: (400, "'From' and 'To' must be of the same channel"),
    30001: (400, "Queue overflow"),
    30008: (400, "Unknown error"),
    30410: (400, "Provider timeout error"),
    63003: (400, "Channel could not find To address"),
    63007: (400, "Could not find a Channel with the specified From address"),
    63013: (400, "Channel policy violation"),
    63014: (400, "Channel message was blocked by the user"),
    63015: (400, "Channel Sandbox can only send messages to phone numbers that have joined"),
    63016: (400, "Failed to send freeform message because you are outside the allowed window"),
    63018: (429, "Rate limit exceeded for Channel"),
    63024: (400, "Invalid message recipient"),
    63038: (429, "Account exceeded the daily messages limit"),
    63051: (400, "WhatsApp Business Account locked by Meta"),
}


class TwilioRefusal(Exception):
    """An error answer in Twilio's JSON form. `code` is Twilio's; status and words follow."""

    def __init__(
        self, code: int, *, status: int | None = None, retry_after: int | None = None
    ) -> None:
        known_status, words = ERRORS.get(code, (400, f"Error {code}"))
        super().__init__(words)
        self.code = code
        self.words = words
        self.status = known_status if status is None else status
        self.retry_after = retry_after

    def answer(self) -> Answer:
        body = {
            "code": self.code,
            "message": self.words,
            "more_info": f"https://www.twilio.com/docs/errors/{self.code}",
            "status": self.status,
        }
        headers = [] if self.retry_after is None else [("Retry-After", str(self.retry_after))]
        return Answer.of(self.status, body, *headers)
