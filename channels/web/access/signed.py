"""JSON Web Tokens as this channel takes them: HS256 and nothing else, read strictly.

The package judges the signature alone. What the claims say is judged by who asked for them, by
the clock that it was given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jwt

_ALGORITHM = "HS256"
_JWS = jwt.PyJWS(algorithms=[_ALGORITHM])
LONGEST = 8192
"""Characters of a token."""


class NotSigned(Exception):
    """A token that none of our secrets signed in our way. The text says what is wrong with it,
    and quotes nothing of it."""


def sign(claims: Mapping[str, object], secret: str) -> str:
    """These claims as a token."""
    payload = json.dumps(claims, separators=(",", ":"), ensure_ascii=False).encode()
    return _JWS.encode(payload, secret.encode(), algorithm=_ALGORITHM)


def verified(token: str, secrets: Sequence[str]) -> Mapping[str, Any]:
    """The claims of a token that one of the secrets signed. Raises NotSigned."""
    if len(token) > LONGEST:
        raise NotSigned(f"it is longer than {LONGEST} characters")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        raise NotSigned("it is no JSON Web Token") from None
    if header.get("alg") != _ALGORITHM:
        raise NotSigned(f"it must be signed with {_ALGORITHM}")
    for secret in secrets:
        try:
            payload = _JWS.decode(token, secret.encode(), algorithms=[_ALGORITHM])
        except (jwt.InvalidTokenError, ValueError):
            continue
        return _claims(payload)
    raise NotSigned("its signature is wrong: it was signed with another secret, or changed")


def _claims(payload: bytes) -> Mapping[str, Any]:
    try:
        claims = json.loads(payload, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise NotSigned("its payload is no JSON, or names a key twice") from None
    if not isinstance(claims, dict):
        raise NotSigned("its payload is no JSON object")
    return claims


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all different: of two readers one could take the first."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _no_number(_word: str) -> Any:
    raise ValueError("Infinity and NaN are no JSON")
