"""Names on the web: clients name their messages, and we keep those of two chats apart."""

from __future__ import annotations

import hashlib
import re

from bot.domain.message import Address

CLIENT_ID = re.compile(r"[A-Za-z0-9_-]{1,59}")
"""A request id as a client mints it."""
_OURS = re.compile(r"web-[0-9a-f]{16}-")


def request_id(who: Address, minted: str) -> str:
    """The request id of the message that this chat's client calls so."""
    return f"web-{hashlib.sha256(who.chat.encode()).hexdigest()[:16]}-{minted}"


def minted(request_id: str) -> str:
    """The id as the client knows it; one that is not a client's stays as it is."""
    ours = _OURS.match(request_id)
    return request_id[ours.end() :] if ours else request_id
