"""Whether a webhook call comes from Telegram."""

from __future__ import annotations

import hmac

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 a header's name


def secret_matches(header: str | None, secret: str) -> bool:
    """Compare the secret header with ours in constant time. An empty secret never matches."""
    if not header or not secret:
        return False
    theirs = header.encode("utf-8", "surrogatepass")
    return hmac.compare_digest(theirs, secret.encode("utf-8", "surrogatepass"))
