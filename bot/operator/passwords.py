"""Passwords: hashing them, and checking them against the settings."""

from __future__ import annotations

import hmac

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from bot.domain.operators import OperatorAccount
from bot.threads import Threads

_AT_ONCE = 2
"""The most hashes that are computed at the same time: each takes 64 MB."""
_TO_SETTINGS = str.maketrans("$,", "._")
_FROM_SETTINGS = str.maketrans("._", "$,")
_HASHER = PasswordHasher()


def hashed(password: str) -> str:
    """The Argon2id hash of a password, in a form that needs no quotes in a shell, in `.env`, in
    Compose or in a list."""
    return _HASHER.hash(password).translate(_TO_SETTINGS).removeprefix(".")


class Passwords:
    """Checks passwords, a few at a time."""

    def __init__(self) -> None:
        self._threads = Threads(_AT_ONCE)

    async def match(self, who: OperatorAccount | None, typed: str) -> bool:
        """Tell whether the password is theirs. It takes equally long for every operator, and for
        None, a name that no operator has."""
        return await self._threads.run(lambda: _matches(who, typed))


def _matches(who: OperatorAccount | None, typed: str) -> bool:
    if who is None or not who.is_hashed:
        _verified(_NOBODYS, typed)
    if who is None:
        return False
    if not who.is_hashed:
        return hmac.compare_digest(who.credential.encode(), typed.encode())
    usual = who.credential
    if not usual.startswith("$"):
        usual = f"${usual.translate(_FROM_SETTINGS)}"
    return _verified(usual, typed)


def _verified(usual: str, typed: str) -> bool:
    try:
        return _HASHER.verify(usual, typed)
    except (VerificationError, InvalidHashError):
        return False


_NOBODYS = (
    "$argon2id$v=19$m=65536,t=3,p=4$bm9ib2R5cyBzYWx0IQ$Tm9ib2R5IGhhcyB0aGlzIHBhc3N3b3JkLCBldmVyLi4"
)
