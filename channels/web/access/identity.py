"""Identities: the site says who its visitor is, in a token that it signed with a shared secret."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.domain.message import as_name
from channels.text import is_blank
from channels.web.access.signed import NotSigned, verified

LONGEST_LIFE = 86_400.0
"""Seconds that an identity may be valid: one that is found in a log next year opens nothing."""
LEEWAY = 30.0
"""Seconds by which the site's clock may differ from ours."""
LONGEST_SUB = 255
_UNUSABLE = ("Cc", "Cs", "Zl", "Zp")


class NotIdentified(Exception):
    """An identity that is not taken; the text says why, to the site's developer."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A visitor as the site knows them: its own id for them, kept as it is, and a name to show."""

    sub: str
    name: str = ""


def identify(token: object, secrets: Sequence[str], now: float) -> Identity:
    """The visitor that this identity names. Raises NotIdentified."""
    if not secrets:
        raise NotIdentified("nobody can sign in here: WEB_IDENTITY_SECRET is not set")
    if not isinstance(token, str):
        raise NotIdentified("the identity must be a JSON Web Token, as a text")
    try:
        claims = verified(token, secrets)
    except NotSigned as error:
        raise NotIdentified(f"the identity is not taken: {error}") from None
    _in_its_time(claims, now)
    return Identity(_sub(claims.get("sub")), _name(claims.get("name")))


def _in_its_time(claims: Mapping[str, Any], now: float) -> None:
    exp, nbf = _seconds(claims.get("exp")), _seconds(claims.get("nbf", 0))
    if exp <= now - LEEWAY:
        raise NotIdentified("the identity is over (exp): sign a new one")
    if exp > now + LONGEST_LIFE + LEEWAY:
        raise NotIdentified("the identity is valid for too long: exp may be 24 hours ahead at most")
    if nbf > now + LEEWAY:
        raise NotIdentified("the identity is not valid yet (nbf): compare the clocks")


def _seconds(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotIdentified("the identity needs exp, when it ends, in seconds since 1970")
    return value


def _sub(sub: object) -> str:
    if not isinstance(sub, str) or is_blank(sub):
        raise NotIdentified("the identity needs sub, your id of the person, as a text")
    if len(sub) > LONGEST_SUB:
        raise NotIdentified(f"the identity's sub is longer than {LONGEST_SUB} characters")
    if any(unicodedata.category(char) in _UNUSABLE for char in sub):
        raise NotIdentified("the identity's sub holds a control character")
    return sub


def _name(name: object) -> str:
    if name is None:
        return ""
    if not isinstance(name, str):
        raise NotIdentified("the identity's name must be a text")
    return as_name(name)
