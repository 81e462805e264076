"""Sessions of operators: signed tokens that every process can check, valid until the password
changes.

All processes share the signing key through the database. A token names its operator and has a mark
of the credential that opened it: when the operator gets another credential, or is removed, the
session is over.
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
"""Seconds that a session lasts: a working day."""
_KEY = "operator"
_JWS = jwt.PyJWS(algorithms=["HS256"])
_OF_MARK = 3
"""Hexadecimal digits of the mark of a name."""
_LONGEST = 2048
"""The most characters of a token."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Somebody who is signed in. `form_token` has to be in every form that they send."""

    id: str
    name: str
    role: Role
    until: float
    form_token: str


class Sessions:
    """Makes and checks the tokens of sessions."""

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
        """The session of a token; None if the token is not valid or the session is over. Raises
        DatabaseUnavailable."""
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
        """Tell whether the session has not expired and was not signed out of. Raises
        DatabaseUnavailable."""
        if self._clock.wall() >= session.until:
            return False
        return not await self._db.ask(session_views.is_ended, _named(session.id))

    async def end(self, session: SignedIn) -> None:
        """Sign out. Raises DatabaseUnavailable."""
        await self._db.write(ended_sessions.end, _named(session.id), session.until)

    async def form_token_of(self, browser: str) -> str:
        """The form token of the sign-in form in the browser with this random name. Raises
        DatabaseUnavailable."""
        return form_token(await self._signs(), browser)

    async def mark_of(self, name: str) -> str:
        """A mark of a name that no operator has, under which tries with it are counted. It is too
        short to reveal what was typed, which may be a password. Raises DatabaseUnavailable."""
        return _digest(await self._signs(), "name", name)[:_OF_MARK]

    async def _signs(self) -> bytes:
        if not self._key:
            fresh = self._clock.token() + self._clock.token()
            self._key = (await self._db.write(secrets.ensure, _KEY, fresh)).encode()
        return self._key


def same_token(given: str, right: str) -> bool:
    """Tell whether a form has the right token, in constant time."""
    return hmac.compare_digest(given.encode(), right.encode())


def form_token(key: bytes, of: str) -> str:
    """The form token of a session, or of a browser that has no session yet."""
    return _digest(key, "form", of)


def _mark(key: bytes, who: OperatorAccount) -> str:
    return _digest(key, "credential", f"{who.name}:{who.credential}")


def _digest(key: bytes, purpose: str, of: str) -> str:
    return hmac.new(key, f"{purpose}:{of}".encode(), hashlib.sha256).hexdigest()[:32]


def _named(session: str) -> str:
    return f"operator:{session}"


def _claims(token: str, key: bytes) -> Mapping[str, Any]:
    """The claims of a token that we signed; empty for any other."""
    try:
        claims: Mapping[str, Any] = json.loads(_JWS.decode(token, key, algorithms=["HS256"]))
    except (jwt.InvalidTokenError, ValueError):
        return {}
    return claims
