"""Session tokens: what a visitor's browser holds, and what it opens.

A token names the address of one chat and is signed; nothing is stored for it. The address of a
guest is a random name that nobody else can know, that of a user is the site's id for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.message import Address
from bot.domain.ports import Clock
from channels.web.identity import Identity
from channels.web.signed import NotSigned, sign, verified

GUEST_LIFE = 90 * 86_400.0
USER_LIFE = 86_400.0
"""Seconds. A guest's token is all that leads to their chat, and is renewed with every visit; a
user's is got anew from the site."""

_FOR = "answerback web session"
_GUEST = "guest:"
_USER = "user:"


class BadToken(Exception):
    """No token of ours, or a changed one."""


@dataclass(frozen=True, slots=True)
class Session:
    """A token, read. `id` names this token alone; `ends_at` in epoch seconds."""

    id: str
    address: Address
    ends_at: float
    name: str = ""

    @property
    def is_guest(self) -> bool:
        """Whether whoever holds the token is all that is known of the visitor."""
        return self.address.chat.startswith(_GUEST)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Makes and reads tokens. The first secret signs; the others were first before."""

    secrets: Sequence[str]
    clock: Clock

    def guest(self, again: Session | None = None) -> tuple[str, Session]:
        """A token for a new guest, or a fresh one for a guest that is known."""
        address = again.address if again else Address(_GUEST + self.clock.token())
        return self._mint(address, "", GUEST_LIFE)

    def user(self, identity: Identity) -> tuple[str, Session]:
        """A token for a signed-in user."""
        return self._mint(Address(_USER + identity.sub), identity.name, USER_LIFE)

    def _mint(self, address: Address, name: str, seconds: float) -> tuple[str, Session]:
        ends_at = float(int(self.clock.wall() + seconds))
        session = Session(self.clock.token(), address, ends_at, name)
        claims = {
            "aud": _FOR,
            "jti": session.id,
            "sub": address.chat,
            "exp": int(ends_at),
            "name": name,
        }
        return sign(claims, self.secrets[0]), session

    def read(self, token: str) -> Session:
        """The session of a token, which may be over. Raises BadToken."""
        try:
            claims = verified(token, self.secrets)
        except NotSigned as error:
            raise BadToken(str(error)) from None
        match claims:
            case {
                "aud": str(purpose),
                "jti": str(name),
                "sub": str(chat),
                "exp": int(ends_at),
                "name": str(shown),
            } if purpose == _FOR and chat.startswith((_GUEST, _USER)):
                return Session(name, Address(chat), float(ends_at), shown)
            case _:
                raise BadToken("it was signed for something else")

    def is_over(self, session: Session) -> bool:
        """Whether its time has run out."""
        return self.clock.wall() >= session.ends_at
