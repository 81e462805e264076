"""A channel as a plug-in: connecting its accounts, and all that they can do besides sending.

`channels/<name>/__init__.py` exports one `ChannelPlugin` as CHANNEL. Everything that differs
between platforms is in it or in the `Traits` of its channel; nothing else knows platforms by name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from bot.domain.clients.desk import Pages
from bot.domain.delivery import DeliveryStatus
from bot.domain.findings import Finding
from bot.domain.message import ChannelName, Event, Inbound
from bot.domain.ports import Channel, Clock, ReportingChannel

S = TypeVar("S")


class NotAuthentic(Exception):
    """A request that the platform did not send: it is refused and nothing is stored."""


class NotReadable(Exception):
    """A body that does not have the form that the platform sends; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class Posted:
    """A request with its whole body. `target` is the route's path and the query as it came."""

    target: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Payload:
    """One of the things that a verified body tells. `text` is the part of the body that is stored.

    `error` says why it can't be read; it is then kept as a dead letter. `status` is a report on a
    message of ours; if there are no events, `text` is only stored if that message is not known.
    `account` names the account that is meant, if several share the route; empty: the route's own.
    """

    text: str
    events: tuple[Event, ...] = ()
    error: str = ""
    status: DeliveryStatus | None = None
    account: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """A path to which a platform posts bodies of at most `largest` bytes.

    `read` verifies and parses a request; it raises NotAuthentic or NotReadable, and nothing else.
    `acknowledgement` is the body of our 2xx answer. `challenge` answers a GET with this query, by
    which a platform checks that the path is ours; it raises NotAuthentic.
    """

    path: str
    read: Callable[[Posted], Sequence[Payload]]
    content_type: str = "text/plain"
    acknowledgement: str = ""
    largest: int = 1_000_000
    challenge: Callable[[Mapping[str, str]], str] | None = None


class Updates(Protocol):
    """A platform that is polled. `updates` raises PollUnavailable, PollConflict, PollRefused."""

    async def updates(self, offset: int | None, timeout: float) -> Sequence[Mapping[str, object]]:
        """Wait up to `timeout` s for updates from `offset` on; asking with an offset confirms
        those before it."""

    def parse(self, update: Mapping[str, object]) -> tuple[Event, ...]:
        """The events of an update. Raises PayloadError."""


Known = Callable[[Mapping[str, float | None]], Awaitable[frozenset[str]]]
"""Finds those of the request ids, given with the platform's times, that are recorded already. A
listing calls it once for each of its pages."""


class Records(Protocol):
    """A platform's own records of what people wrote to one account."""

    def inbound_since(self, since: datetime, known: Known) -> AsyncIterator[Inbound]:
        """Every message since then that is not known, oldest first. Raises RecordsUnavailable
        at the end when that was not all."""


class Profile(Protocol):
    """The account's own name, on a platform that has to be asked. Raises PollUnavailable,
    PollConflict, PollRefused."""

    @property
    def public_name(self) -> str:
        """The name that a mention uses; empty while nobody knows it."""

    def remember(self, public_name: str) -> None:
        """Take the name that an earlier process learned."""

    async def learn(self) -> str:
        """Ask the platform for the name, and use it from now on."""

    async def show_menu(self, menus: Mapping[str, Sequence[tuple[str, str]]]) -> None:
        """Set the menu of commands by two-letter language, the empty one for all others."""


@dataclass(frozen=True, slots=True)
class WebhookState:
    """A webhook as its platform has it. `error_age` is in seconds. `missing` are the kinds of
    updates that it should deliver and does not. `trouble` says why the platform could not be asked;
    `refused`: it does not accept our credentials. `by_hand` is what must be done at the platform
    itself."""

    channel: str
    url: str = ""
    wanted: str = ""
    pending: int | None = None
    error: str = ""
    error_age: float | None = None
    trouble: str = ""
    by_hand: str = ""
    missing: Sequence[str] = ()
    refused: bool = False


class Webhook(Protocol):
    """A platform's webhook. `set` and `delete` return what was done, line by line, and
    raise ConfigurationError, PollUnavailable, PollConflict, PollRefused, RecordsUnavailable."""

    async def state(self) -> WebhookState:
        """The webhook now. Never raises: that the platform can't be asked is in the state."""

    async def set(self, *, drop_pending: bool) -> Sequence[str]:
        """Point the platform at PUBLIC_URL. `drop_pending`: discard the updates that wait there."""

    async def delete(self) -> Sequence[str]:
        """Remove our webhook."""


async def _nothing_to_examine() -> Sequence[Finding]:
    return ()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One account on one platform: the channel that sends, and what else the platform offers.

    `carrier`: the platform reports later on what it accepted. `updates`: this account is polled.
    `records`: missed messages can be listed. `profile`: the account's name has to be asked for.
    `webhook`: where the platform delivers can be read and set. `pages`: people's clients come to us
    instead. `recovered` asks whether an account that went down with this code can send again.
    `examine` is asked by `answerback doctor`, and never raises.
    """

    channel: Channel
    carrier: ReportingChannel | None = None
    routes: Sequence[Route] = ()
    updates: Updates | None = None
    records: Records | None = None
    profile: Profile | None = None
    webhook: Webhook | None = None
    pages: Pages | None = None
    recovered: Callable[[str], Awaitable[bool]] | None = None
    examine: Callable[[], Awaitable[Sequence[Finding]]] = _nothing_to_examine


Terminal = Callable[[str, str], Awaitable[None]]
"""Shows a text in the terminal. The second value is the id of the message that it answers, empty
for none. Raises OSError when the terminal is gone."""


@dataclass(frozen=True, slots=True)
class Host:
    """The tools that a process gives to its channels: its clock; by language, the words that
    accompany a reply sent as a file; its terminal, if it has one; and the texts of the chat on a
    page, by language tag and name."""

    clock: Clock
    long_reply: Callable[[str], str]
    terminal: Terminal | None = None
    page_texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ChannelPlugin(Generic[S]):
    """A platform. `settings` is its part of the environment, a class of pydantic-settings that
    `Settings` inherits: every field has a name of its own, and what must never be printed is
    a field with `repr=False`. None if the platform has no settings.

    `turned_on_by` tells a person which variables turn it on. `beside_terminal`: if no channel is
    configured, it is served on loopback, beside the chat in the terminal.

    `connect` builds the accounts, not yet open; only there are the platform's packages imported.
    It raises ConfigurationError. If accounts share a route, the first one has it.
    """

    name: ChannelName
    settings: type[S] | None
    configured: Callable[[S], bool]
    connect: Callable[[S, Host], Sequence[Endpoint]]
    turned_on_by: str = ""
    beside_terminal: Callable[[S], bool] = lambda _settings: False
