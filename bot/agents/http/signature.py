"""Signs what we ask an agent over HTTP, so that its server can tell us from a stranger."""

from __future__ import annotations

import hashlib
import hmac

SIGNATURE_HEADER = "Answerback-Signature"


def sign(secret: str, body: bytes, at: int) -> str:
    """The header's value: `t=<epoch seconds>,v1=<hex HMAC-SHA256 of "t.body">`.

    The receiver computes the same over the raw body, compares in constant time, and refuses
    a `t` that is minutes away from its own clock.
    """
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"
