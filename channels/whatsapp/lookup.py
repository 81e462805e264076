"""Whether Twilio's list shows an attempt whose answer never came. Pure.

The list carries nothing of ours, so a message is recognised by what it is: from us, through
the API, with these words, made since the attempt began, and not known as another part.
"""

from __future__ import annotations

from collections.abc import Iterable

from bot.domain.delivery import Lookup, Sent
from bot.domain.ports import SendRef
from channels.whatsapp.listed import Listed
from channels.whatsapp.wire import Wire

EARLIER = 5.0
"""Seconds by which Twilio's clock may be behind ours. There is no later bound: what is in the
list exists, and a clock of ours that is slow must not hide it."""


def find(rows: Iterable[Listed], wire: Wire, ref: SendRef, owned: frozenset[str]) -> Sent | Lookup:
    """The attempt's message among `rows`, the oldest that fits.

    A template's words are filled in at Twilio: where ours can't be compared, any message of
    that time that nobody owns means CANNOT_TELL.
    """
    candidates = sorted(
        (row for row in rows if _possible(row, ref, owned)), key=lambda row: row.created or 0.0
    )
    bodies = {_comparable(body) for body in (wire.body, wire.fallback) if body}
    for row in candidates:
        if _comparable(row.body) in bodies and not _other_file(row, wire):
            return Sent(row.sid)
    if wire.content and candidates:
        return Lookup.CANNOT_TELL
    return _only_file(candidates, wire)


def _only_file(candidates: list[Listed], wire: Wire) -> Sent | Lookup:
    """A file without words is recognised by having no words."""
    bare = [row for row in candidates if row.media_count and not row.body.strip()]
    if wire.media and not wire.body and bare:
        return Sent(bare[0].sid)
    return Lookup.NOT_FOUND


def _possible(row: Listed, ref: SendRef, owned: frozenset[str]) -> bool:
    return (
        row.direction == "outbound-api"
        and bool(row.sid)
        and row.sid not in owned
        and row.created is not None
        and row.created >= ref.started_at - EARLIER
    )


def _other_file(row: Listed, wire: Wire) -> bool:
    """The same words with a file where we sent none."""
    return bool(row.media_count) and not wire.media


def _comparable(body: str) -> str:
    return body.replace("\r\n", "\n").strip()
