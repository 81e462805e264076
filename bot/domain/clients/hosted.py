"""Addresses of files that we keep and a platform, or the person, fetches: each opens one file.

An address can't be guessed: it carries a mark made with a secret. Whoever has it may read the file
for as long as that is kept, as with any link in a chat.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass

PATH = "/files"
SIGNED_WITH = "files"
"""The name of the secret with which addresses are made."""
_TOKEN = re.compile(r"([0-9]{1,18})-([0-9a-f]{64})-([0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class KeptName:
    """The name of a kept file: its account's row, and the hash under which it is stored."""

    account: int
    ref: str


def path_of(secret: str, file: KeptName) -> str:
    """The path under which the file is fetched."""
    named = f"{file.account}-{file.ref}"
    return f"{PATH}/{named}-{_mark(secret, named)}"


def file_at(secret: str, token: str) -> KeptName | None:
    """The file that the last part of such a path names; None for a path that we did not make."""
    found = _TOKEN.fullmatch(token)
    if found is None:
        return None
    account, ref, mark = found.groups()
    if not hmac.compare_digest(mark, _mark(secret, f"{account}-{ref}")):
        return None
    return KeptName(int(account), ref)


def _mark(secret: str, named: str) -> str:
    return hmac.new(secret.encode(), named.encode(), hashlib.sha256).hexdigest()[:32]
