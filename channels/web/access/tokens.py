"""Session tokens: a visitor's browser holds one, and it opens one chat.

A token names the address of the chat and is signed; nothing is stored for it. The address of a
guest is a random name that nobody else can know, that of a user is the site's id for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.message import Address, clean
from bot.domain.ports import Clock
from channels.web.access.identity import Identity
from channels.web.access.signed import NotSigned, sign, verified

GUEST_LIFE = 90 * 86_400.0
USER_LIFE = 86_400.0
"""Seconds. A guest's token is all that leads to their chat, and is renewed with every visit; a
user's is got anew from the site."""

_NEVER = 1 << 53
_FOR = "answerback web session"
_GUEST = "guest:"
_USER = "user:"


class NotKnown(Exception):
    """The token is missing, damaged or over."""


@dataclass(frozen=True, slots=True)
class Session:
    """A token, read. `id` stays the same when the token is renewed; `ends_at` in epoch seconds."""

    id: str
    address: Address
    ends_at: float
    name: str = ""

    @property
    def is_guest(self) -> bool:
        """Tell whether whoever holds the token is all that is known of the visitor."""
        return self.address.chat.startswith(_GUEST)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Makes and reads tokens. The first secret signs; the others were first before."""

    secrets: Sequence[str]
    clock: Clock

    def guest(self, before: Session | None = None) -> tuple[str, Session]:
        """A token for a new guest, or a fresh one for the guest of the session before."""
        address = before.address if before else Address(_GUEST + self.clock.token())
        return self._mint(address, "", GUEST_LIFE, before)

    def user(self, identity: Identity, before: Session | None = None) -> tuple[str, Session]:
        """A token for a signed-in user, of the session before if that was the user's too."""
        address = Address(_USER + identity.sub)
        same = before if before and before.address == address else None
        return self._mint(address, identity.name, USER_LIFE, same)

    def _mint(
        self, address: Address, name: str, seconds: float, before: Session | None
    ) -> tuple[str, Session]:
        ends_at = float(int(self.clock.wall() + seconds))
        named = before.id if before else self.clock.token()
        session = Session(named, address, ends_at, name)
        claims = {
            "aud": _FOR,
            "sid": session.id,
            "sub": address.chat,
            "exp": int(ends_at),
            "name": name,
        }
        return sign(claims, self.secrets[0]), session

    def read(self, token: str) -> Session:
        """The session of a token, which may be over. Raises NotKnown."""
        try:
            claims = verified(token, self.secrets)
        except NotSigned as error:
            raise NotKnown(str(error)) from None
        match claims:
            case {
                "aud": str(purpose),
                "sid": str(name),
                "sub": str(chat),
                "exp": int(ends_at),
                "name": str(shown),
            } if (
                purpose == _FOR
                and chat.startswith((_GUEST, _USER))
                and _storable(name, chat, shown)
            ):
                return Session(name, Address(chat), float(min(ends_at, _NEVER)), shown)
            case _:
                raise NotKnown("it was signed for something else")


def _storable(*texts: str) -> bool:
    """Tell whether any database takes these; what we sign is."""
    return all(clean(text) == text for text in texts)
