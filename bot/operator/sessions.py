"""Sessions of operators: signed, so that every process knows one, and over when their password is.

The key is a secret that all processes share by the database. A token names its operator and carries
a mark of the credential that opened it: who has another one by now, or none, has no session.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt

from bot.domain.operators import OperatorAccount, Role
from bot.domain.ports import Clock
from storage import ended_sessions, secrets
from storage.engine.database import Database
from storage.views import sessions as session_views

LASTS = 12 * 3600.0
"""Seconds of a session; a working day."""
_KEY = "operator"
_JWS = jwt.PyJWS(algorithms=["HS256"])
_OF_MARK = 3
"""Hexadecimal digits."""
_LONGEST = 2048
"""Characters of a token."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Somebody who is signed in. `form_token` stands in every form that they send."""

    id: str
    name: str
    role: Role
    until: float
    form_token: str


class Sessions:
    """The maker and reader of tokens in this process."""

    def __init__(self, db: Database, clock: Clock, operators: Sequence[OperatorAccount]) -> None:
        self._db = db
        self._clock = clock
        self._operators: Mapping[str, OperatorAccount] = {one.name: one for one in operators}
        self._key = b""

    def named(self, name: str) -> OperatorAccount | None:
        """The operator of this name."""
        return self._operators.get(name)

    async def begin(self, who: OperatorAccount) -> str:
        """A token for a new session. Raises DatabaseUnavailable."""
        key, until = await self._signs(), self._clock.wall() + LASTS
        claims = {"id": self._clock.token(), "who": who.name, "until": until, "by": _mark(key, who)}
        return _JWS.encode(json.dumps(claims).encode(), key, algorithm="HS256")

    async def find(self, token: str) -> SignedIn | None:
        """The session of a token, which nobody ended. Raises DatabaseUnavailable."""
        if not token or len(token) > _LONGEST:
            return None
        key = await self._signs()
        claims = _claims(token, key)
        who = self._operators.get(str(claims.get("who")))
        if who is None or not hmac.compare_digest(str(claims.get("by")), _mark(key, who)):
            return None
        until, number = float(claims["until"]), str(claims["id"])
        session = SignedIn(number, who.name, who.role, until, form_token(key, number))
        return session if await self.goes_on(session) else None

    async def goes_on(self, session: SignedIn) -> bool:
        """Tell whether its time is not over, and nobody signed out of it. Raises
        DatabaseUnavailable."""
        if self._clock.wall() >= session.until:
            return False
        return not await self._db.ask(session_views.is_ended, _named(session.id))

    async def end(self, session: SignedIn) -> None:
        """Sign out. Raises DatabaseUnavailable."""
        await self._db.write(ended_sessions.end, _named(session.id), session.until)

    async def form_token_of(self, browser: str) -> str:
        """The token of the form by which somebody signs in, in a browser that was given this
        name. Raises DatabaseUnavailable."""
        return form_token(await self._signs(), browser)

    async def mark_of(self, name: str) -> str:
        """A mark by which tries with one name are counted that nobody has: too short to tell what
        was typed, which may be a password. Raises DatabaseUnavailable."""
        return _digest(await self._signs(), "name", name)[:_OF_MARK]

    async def _signs(self) -> bytes:
        if not self._key:
            fresh = self._clock.token() + self._clock.token()
            self._key = (await self._db.write(secrets.ensure, _KEY, fresh)).encode()
        return self._key


def same_token(given: str, right: str) -> bool:
    """Tell whether a form has the right token, in a time that says nothing about it."""
    return hmac.compare_digest(given.encode(), right.encode())


def form_token(key: bytes, of: str) -> str:
    """The token of the forms of a session, or of a browser that has none yet."""
    return _digest(key, "form", of)


def _mark(key: bytes, who: OperatorAccount) -> str:
    return _digest(key, "credential", f"{who.name}:{who.credential}")


def _digest(key: bytes, purpose: str, of: str) -> str:
    return hmac.new(key, f"{purpose}:{of}".encode(), hashlib.sha256).hexdigest()[:32]


def _named(session: str) -> str:
    return f"operator:{session}"


def _claims(token: str, key: bytes) -> Mapping[str, Any]:
    """The claims of a token of ours; none of any other."""
    try:
        claims: Mapping[str, Any] = json.loads(_JWS.decode(token, key, algorithms=["HS256"]))
    except (jwt.InvalidTokenError, ValueError):
        return {}
    return claims
