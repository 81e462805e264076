"""The Graph API's error answers, by code: HTTP status and words, as far as they are documented.

The status is what was seen with a code; Meta promises none, so no caller may read it.
"""

from __future__ import annotations

from tests.fakes.faults import Answer
from tests.fakes.recording import Json

ERRORS: dict[int, tuple[int, str]] = {
    0: (401, "AuthException"),
    1: (400, "API Unknown"),
    2: (503, "API Service"),
    3: (500, "API Method"),
    4: (400, "API Too Many Calls"),
    10: (403, "Permission Denied"),
    33: (400, "Parameter value is not valid"),
    100: (400, "Invalid parameter"),
    190: (401, "Error validating access token: Session has expired"),
    200: (403, "API Permission"),
    368: (403, "Temporarily blocked for policies violations"),
    80007: (400, "Rate limit issues"),
    130429: (400, "Rate limit hit"),
    130472: (400, "User's number is part of an experiment"),
    130497: (403, "Business account is restricted from messaging users in this country"),
    131000: (500, "Something went wrong"),
    131005: (403, "Access denied"),
    131008: (400, "Required parameter is missing"),
    131009: (400, "Parameter value is not valid"),
    131016: (500, "Service unavailable"),
    131021: (400, "Recipient cannot be sender"),
    131026: (400, "Message undeliverable"),
    131031: (403, "Account has been locked"),
    131042: (400, "Business eligibility payment issue"),
    131047: (400, "Re-engagement message"),
    131048: (400, "Spam rate limit hit"),
    131049: (400, "This message was not delivered to maintain healthy ecosystem engagement"),
    131050: (400, "User has stopped marketing messages"),
    131051: (400, "Unsupported message type"),
    131053: (400, "Media upload error"),
    131056: (400, "(Business Account, Consumer Account) pair rate limit hit"),
    131057: (500, "Account in maintenance mode"),
    132000: (400, "Template param count mismatch"),
    132001: (404, "Template does not exist"),
    133004: (503, "Server temporarily unavailable"),
    133010: (400, "Phone number not registered"),
    135000: (400, "Generic user error"),
}


class GraphRefusal(Exception):
    """An error answer in Graph's form. `details` is what Meta adds for WhatsApp."""

    def __init__(
        self, code: int, details: str = "", *, status: int | None = None, subcode: int | None = None
    ) -> None:
        known_status, words = ERRORS.get(code, (400, f"Error {code}"))
        super().__init__(words)
        self.code = code
        self.words = words
        self.details = details
        self.status = known_status if status is None else status
        self.subcode = subcode

    def answer(self, *headers: tuple[str, str]) -> Answer:
        error: Json = {
            "message": f"(#{self.code}) {self.words}",
            "type": "OAuthException",
            "code": self.code,
            "error_data": {
                "messaging_product": "whatsapp",
                "details": self.details or self.words,
            },
            "fbtrace_id": "AAAAAAAAAAAAAAAAAAAAAAA",
        }
        if self.subcode is not None:
            error["error_subcode"] = self.subcode
        return Answer.of(self.status, {"error": error}, *headers)
