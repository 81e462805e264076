"""Tokens: proof that a client is who it was when the token was minted."""

from __future__ import annotations

from collections.abc import Mapping

import jwt

from bot.domain.message import Address
from bot.domain.ports import Clock

_AUDIENCE = "answerback:chat"
_LIFETIME = 90 * 86_400.0


class NotKnown(Exception):
    """The token is missing, damaged or over."""


class Tokens:
    """Mints and reads tokens."""

    def __init__(self, secret: str, clock: Clock) -> None:
        self._secret = secret or clock.token() + clock.token()
        self._clock = clock

    def mint(self, who: Address) -> tuple[str, float]:
        """A token for this address, and when it is over."""
        over = self._clock.wall() + _LIFETIME
        claims = {"sub": who.chat, "exp": int(over), "aud": _AUDIENCE}
        return jwt.encode(claims, self._secret, algorithm="HS256"), over

    def mint_guest(self) -> tuple[str, Address, float]:
        """A token for somebody new."""
        who = Address(f"guest:{self._clock.token()}")
        token, over = self.mint(who)
        return token, who, over

    async def who(self, headers: Mapping[str, str]) -> Address:
        """The address that the request has proven. Raises NotKnown."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise NotKnown
        try:
            claims = jwt.decode(token.strip(), self._secret, ["HS256"], audience=_AUDIENCE)
        except jwt.InvalidTokenError as error:
            raise NotKnown from error
        return Address(claims["sub"])
