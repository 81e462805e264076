"""The account's Message resources, and the list that shows them late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from math import ceil
from urllib.parse import urlencode

from tests.fakes.recording import Json, Now

VERSION = "2010-04-01"
FAILED = frozenset({"failed", "undelivered", "canceled"})


@dataclass(frozen=True, slots=True)
class Media:
    """A file of a message."""

    sid: str
    content_type: str
    data: bytes


@dataclass
class Message:
    """One Message resource. Times in the fake's epoch seconds; `sent_at` None while queued.

    `callback` is the StatusCallback URL with its query and fragment; `content_sid` is set for
    a template. `visible_from` is the number of the first list call that shows it.
    """

    sid: str
    account: str
    direction: str
    from_: str
    to: str
    body: str
    status: str
    created_at: float
    sent_at: float | None = None
    updated_at: float = 0.0
    error_code: int | None = None
    error_message: str | None = None
    service: str | None = None
    media: list[Media] = field(default_factory=list)
    media_urls: list[str] = field(default_factory=list)
    callback: str = ""
    content_sid: str = ""
    content_variables: str = ""
    visible_from: float = 0.0
    history: list[str] = field(default_factory=list)

    @property
    def uri(self) -> str:
        return f"/{VERSION}/Accounts/{self.account}/Messages/{self.sid}"

    def as_json(self) -> Json:
        """The resource with all of its 20 fields."""
        return {
            "account_sid": self.account,
            "api_version": VERSION,
            "body": self.body,
            "date_created": rfc2822(self.created_at),
            "date_sent": rfc2822(self.sent_at),
            "date_updated": rfc2822(self.updated_at or self.created_at),
            "direction": self.direction,
            "error_code": self.error_code,
            "error_message": self.error_message,
            "from": self.from_ or None,
            "messaging_service_sid": self.service,
            "num_media": str(len(self.media) + len(self.media_urls)),
            "num_segments": str(max(1, ceil(len(self.body) / 153))),
            "price": None,
            "price_unit": None,
            "sid": self.sid,
            "status": self.status,
            "subresource_uris": {"media": f"{self.uri}/Media.json"},
            "to": self.to,
            "uri": f"{self.uri}.json",
        }


def rfc2822(at: float | None) -> str | None:
    """A time as Twilio writes it, or None."""
    return None if at is None else format_datetime(datetime.fromtimestamp(int(at), UTC))


@dataclass(frozen=True, slots=True)
class Query:
    """The filters of a list call, as they came."""

    to: str = ""
    from_: str = ""
    sent_on: str = ""
    sent_before: str = ""
    sent_after: str = ""
    page_size: int = 50
    page: int = 0
    token: str = ""

    def filter(self) -> Callable[[Message], bool]:
        """The question whether the filters let a message through; a queued one has no date to
        match. Raises ValueError on a bad date. Dates are read once, not for each of 100,000."""
        on, before, after = (
            moment(text) if text else None
            for text in (self.sent_on, self.sent_before, self.sent_after)
        )

        def wants(message: Message) -> bool:
            if (self.to and self.to != message.to) or (self.from_ and self.from_ != message.from_):
                return False
            if on is before is after is None:
                return True
            at = message.sent_at
            if at is None or (on is not None and not 0 <= at - on < 86_400):
                return False
            if before is not None and int(at) > before:
                return False
            return after is None or int(at) >= after

        return wants

    def uri(self, account: str, page: int, token: str = "") -> str:
        pairs = {
            "To": self.to,
            "From": self.from_,
            "DateSent": self.sent_on,
            "DateSent<": self.sent_before,
            "DateSent>": self.sent_after,
            "PageSize": str(self.page_size),
            "Page": str(page),
            "PageToken": token,
        }
        query = urlencode({name: value for name, value in pairs.items() if value})
        return f"/{VERSION}/Accounts/{account}/Messages.json?{query}"


def moment(text: str) -> float:
    """Epoch seconds of a date or a UTC time. Raises ValueError."""
    shape = "%Y-%m-%d" if len(text) == 10 else "%Y-%m-%dT%H:%M:%SZ"
    return datetime.strptime(text, shape).replace(tzinfo=UTC).timestamp()


class MessageBook:
    """Messages by SID. A message of ours shows in the list only after `lag` further list
    calls (infinite: after `reveal()`); fetching it by its SID always works."""

    def __init__(self, account: str, now: Now) -> None:
        self.account = account
        self.lag: float = 0
        self.all: dict[str, Message] = {}
        self.list_calls = 0
        self._now = now
        self._numbers = 0

    def number(self, prefix: str) -> str:
        """A fresh SID."""
        self._numbers += 1
        return f"{prefix}{self._numbers:032x}"

    def add(self, message: Message) -> Message:
        if message.direction != "inbound":
            message.visible_from = self.list_calls + self.lag + 1
        message.history.append(message.status)
        self.all[message.sid] = message
        return message

    def reveal(self) -> None:
        """Show everything in the list from now on."""
        for message in self.all.values():
            message.visible_from = 0.0

    def page(self, query: Query) -> Json:
        """One page of the list, newest first. Raises ValueError on a bad date."""
        if not query.token:
            self.list_calls += 1
        wants = query.filter()
        found = [m for m in reversed(self.all.values()) if wants(m)]
        found = [m for m in found if m.visible_from <= self.list_calls]
        found.sort(key=lambda m: m.created_at, reverse=True)
        start = 0
        if query.token:
            last = query.token.removeprefix("PA")
            start = next((i + 1 for i, m in enumerate(found) if m.sid == last), len(found))
        shown = found[start : start + query.page_size]
        more = start + len(shown) < len(found)
        first = query.page * query.page_size
        return {
            "end": first + max(len(shown) - 1, 0),
            "first_page_uri": query.uri(self.account, 0),
            "next_page_uri": (
                query.uri(self.account, query.page + 1, f"PA{shown[-1].sid}") if more else None
            ),
            "page": query.page,
            "page_size": query.page_size,
            "previous_page_uri": query.uri(self.account, query.page - 1) if query.page else None,
            "messages": [m.as_json() for m in shown],
            "start": first,
            "uri": query.uri(self.account, query.page, query.token),
        }
