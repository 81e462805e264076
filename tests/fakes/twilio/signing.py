"""Twilio's request signature, written from its description and not from our own code."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urldefrag

SIGNATURE = "X-Twilio-Signature"
SETTINGS = "X-Twilio-Webhooks-Signature-Settings"


@dataclass(frozen=True, slots=True)
class SharedKey:
    """A key of the newer kind: its requests are signed with SHA-256 and say so."""

    id: str
    secret: str


def signature(url: str, fields: Iterable[tuple[str, str]], secret: str, algorithm: str) -> str:
    """Base64 of the HMAC over the URL without its fragment and the sorted fields.

    `algorithm` is a hash name as hashlib knows it: `sha1` or `sha256`.
    """
    signed = urldefrag(url).url
    for name, value in sorted(set(fields)):
        signed += name + value
    made = hmac.new(secret.encode(), signed.encode("utf-8"), getattr(hashlib, algorithm))
    return base64.b64encode(made.digest()).decode()


def signed_headers(
    url: str, fields: Iterable[tuple[str, str]], auth_token: str, key: SharedKey | None
) -> dict[str, str]:
    """The headers that prove a request; with `key`, by the newer scheme."""
    if key is None:
        return {SIGNATURE: signature(url, fields, auth_token, "sha1")}
    return {
        SIGNATURE: signature(url, fields, key.secret, "sha256"),
        SETTINGS: f"key={key.id},algorithm=HMAC_SHA256",
    }
