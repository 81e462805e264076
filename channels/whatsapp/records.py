"""Twilio's own records: the fate of an attempt whose answer never came, and the messages that
came while nobody listened.

The list carries nothing of ours, so an attempt is recognised by what it is: from us, through
the API, with these words, made about when the attempt began or later, and not known as another
part. When it was made is told by Twilio's clock and when it began by ours, so that only words that
are nowhere in the list are taken for not sent: an earlier message that fits may be the attempt.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bot.domain.delivery import Lookup, Sent
from bot.domain.errors import RecordsUnavailable
from bot.domain.message import Attachment, Inbound, PayloadError
from bot.domain.plugin import Known
from bot.domain.ports import SendRef
from channels.http import CallFailed, ErrorAnswer
from channels.whatsapp.api import Page, TwilioApi
from channels.whatsapp.compose import Wire
from channels.whatsapp.errors import COPY_BOTH
from channels.whatsapp.parse import TwilioMessage, attachment, parse_message

EARLIER = 60.0
"""Seconds by which Twilio's clock may be behind ours for a message to be taken for the attempt.
There is no later bound: what is in the list exists, and a clock of ours that is slow must not
hide it."""
DOUBTED = 3600.0
"""Seconds before the attempt in which a message that nobody owns leaves it in doubt."""


def find(
    rows: Iterable[TwilioMessage], wire: Wire, ref: SendRef, owned: frozenset[str]
) -> Sent | Lookup:
    """The attempt's message among `rows`, the oldest that fits.

    A template's words are filled in at Twilio: where ours can't be compared, any message of
    that time that nobody owns means CANNOT_TELL.
    """
    candidates = sorted(
        (
            row
            for row in rows
            if row.direction == "outbound-api"
            and row.sid
            and row.sid not in owned
            and row.created is not None
            and row.created >= ref.started_at - DOUBTED
        ),
        key=lambda row: row.created or 0.0,
    )
    lately = [row for row in candidates if (row.created or 0.0) >= ref.started_at - EARLIER]
    found = next((row for row in lately if _fits(row, wire)), None)
    if found is not None:
        return Sent(found.sid)
    if (wire.content and lately) or any(_fits(row, wire) for row in candidates):
        return Lookup.CANNOT_TELL
    return Lookup.NOT_FOUND


def _fits(row: TwilioMessage, wire: Wire) -> bool:
    """Tell whether the message may be this one: by its words, or as a file by having none."""
    if wire.media and not wire.body and row.media_count and not row.body.strip():
        return True
    bodies = {_comparable(body) for body in (wire.body, wire.fallback) if body}
    return _comparable(row.body) in bodies and not (row.media_count and not wire.media)


def _comparable(body: str) -> str:
    return body.replace("\r\n", "\n").strip()


PAGE_SIZE = 1000
MOST_PAGES = 200
DISORDER = 3600.0
"""Seconds; the list is newest first, and this is how far a row may stand out of place."""


class TwilioUnavailable(RecordsUnavailable):
    """Twilio's records could not be read, or not to their end."""

    def __init__(self, said: str, failure: CallFailed | None = None) -> None:
        refused = isinstance(failure, ErrorAnswer) and failure.status in (401, 403)
        super().__init__(f"{said}: {COPY_BOTH}" if refused else said)
        self.refused = refused


@dataclass
class _Found:
    """Inbound messages that are not known, and why the list is not whole (empty: it is)."""

    rows: list[TwilioMessage] = field(default_factory=list)
    missing: str = ""


async def inbound_since(
    api: TwilioApi,
    sender: str,
    since: datetime,
    known: Known,
    most_pages: int = MOST_PAGES,
) -> AsyncIterator[Inbound]:
    """Every message to `sender` since `since` (with a time zone) that is not known, oldest
    first.

    Raises TwilioUnavailable at the end, after what was found, when that was not all: then
    the mark must not move. A row that names no message or no sender is left out.
    """
    if since.tzinfo is None:
        raise ValueError("since needs a time zone")
    found = await _collect(api, sender, since.astimezone(UTC), known, most_pages)
    for row in sorted(found.rows, key=lambda row: (row.created or 0.0, row.sid)):
        try:
            files = await _files(api, row) if row.media_count else ()
            message = parse_message(row, files)
        except CallFailed as error:
            found.missing = found.missing or f"the files of a message: {error}"
            continue
        except PayloadError:
            continue
        yield message
    if found.missing:
        raise TwilioUnavailable(found.missing)


async def _collect(
    api: TwilioApi, sender: str, since: datetime, known: Known, most_pages: int
) -> _Found:
    """Pages until one is wholly older than `since`; days only, since Twilio may cut times.

    Of each page only what is not known is kept: a busy number has tens of thousands an hour.
    """
    found, seen = _Found(), set[str]()
    day = (since - timedelta(days=1)).strftime("%Y-%m-%dT00:00:00Z")
    asked: Mapping[str, str] = {"To": sender, "DateSent>": day, "PageSize": str(PAGE_SIZE)}
    page: Page | None = None
    try:
        for _ in range(most_pages):
            page = await (api.more(page) if page else api.messages(asked))
            rows = [TwilioMessage.of(resource) for resource in page.rows]
            # A row without a time is taken: it may be new, and a known one does no harm.
            recent = {
                f"wa-{row.sid}": row
                for row in rows
                if row.direction == "inbound"
                and row.target in (sender, "")
                and (row.created is None or row.created >= since.timestamp())
            }
            times = {name: row.created for name, row in recent.items()}
            told = await known(times) if times else frozenset[str]()
            found.rows += [row for name, row in recent.items() if name not in told]
            oldest = since.timestamp() - DISORDER
            past = rows and all(row.created is not None and row.created < oldest for row in rows)
            if past or not page.next_url:
                return found
            if page.next_url in seen:
                found.missing = "the list leads back to a page that was read"
                return found
            seen.add(page.next_url)
        found.missing = f"more than {most_pages} pages"
    except CallFailed as error:
        found.missing = f"the list broke off: {type(error).__name__}, {error}"
    return found


async def _files(api: TwilioApi, row: TwilioMessage) -> tuple[Attachment, ...]:
    """The message's files; none when they were deleted."""
    try:
        rows = await api.media_of(row.sid)
    except ErrorAnswer as error:
        if error.status == 404:
            return ()
        raise
    named = [(str(file.get("sid") or ""), str(file.get("content_type") or "")) for file in rows]
    return tuple(attachment(api.media_url(row.sid, sid), mime) for sid, mime in named if sid)
