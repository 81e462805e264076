"""A channel as a plug-in: connecting an account, and the offers of its platform besides sending.

`channels/<name>/__init__.py` exports one `ChannelPlugin` as CHANNEL. Everything that differs
between platforms is in it or in its channel's `Traits`; nothing else asks for a name.
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
    """A body that is not in the form that the platform sends; the text says in which way."""


@dataclass(frozen=True, slots=True)
class Posted:
    """A request with its whole body. `target` is the route's path and the query as it came."""

    target: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Payload:
    """One of the things that a verified body tells. `text` is what is stored of it. `error` says
    why its events can't be told: then it is kept as a dead letter. `status` is the platform's
    word on a message of ours; without events, `text` is kept of it only where that message is
    nobody's. `account` is whose it is, where the accounts of a platform share a route; empty:
    the route's own."""

    text: str
    events: tuple[Event, ...] = ()
    error: str = ""
    status: DeliveryStatus | None = None
    account: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """A path at which a platform posts, at most `largest` bytes. `read` tells what there is in a
    body; it raises NotAuthentic or NotReadable and nothing else. `acknowledgement` is what the
    platform takes for "received" and shows to nobody. `challenge` answers a GET with this query,
    by which a platform makes sure whose path it is; it raises NotAuthentic."""

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
"""Finds those of the request ids, given with the platform's times, that are recorded already. One
listing asks it several times, of a page each."""


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
    """A webhook as its platform has it. `error_age` in seconds; `missing` are kinds of updates
    that it does not deliver and should. `trouble` says that the platform could not be asked,
    `refused` that it knows us no more, `by_hand` what must be done at the platform itself."""

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
        """The webhook now. Never raises: a platform that can't be asked is a state too."""

    async def set(self, *, drop_pending: bool) -> Sequence[str]:
        """Point the platform at PUBLIC_URL; `drop_pending` throws away what waits there."""

    async def delete(self) -> Sequence[str]:
        """Take our webhook away."""


async def _nothing_to_examine() -> Sequence[Finding]:
    return ()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One account on one platform: the channel that sends, and what else there is to it.

    `carrier` is there where the platform reports later on what it took, `updates` where this
    account is polled, `records` where missed messages can be listed, `profile` where the
    account has to be asked for its name, `webhook` where the platform's delivery can be set,
    `pages` where people's clients come to us instead, `recovered` where the platform can be asked
    whether an account that was down with a code can send again.
    `examine` is asked by `answerback doctor` and never raises.
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
"""Puts a text before the person at the terminal. The second one is the platform's id of the message
that it answers, empty for none. Raises OSError when the terminal is gone."""


@dataclass(frozen=True, slots=True)
class Host:
    """The tools that a process gives its channels: its clock, the words over a reply sent as a
    file (by the person's language), its terminal, if it has one, and the words of a chat on a
    page, by language tag and by their names there."""

    clock: Clock
    long_reply: Callable[[str], str]
    terminal: Terminal | None = None
    page_texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ChannelPlugin(Generic[S]):
    """A platform. `settings` is its part of the environment, a class of pydantic-settings that
    `Settings` inherits: every field has a name of its own, and what must never be printed is
    a field with `repr=False`. None where no variable says anything of it.

    `turned_on_by` names the variables that turn it on, for a person. `beside_terminal` says
    whether it is served on loopback, beside the terminal chat, where no channel is configured.

    `connect` builds the accounts, not yet open, and is the first to import the platform's
    packages. It raises ConfigurationError. A route that they share is the first one's.
    """

    name: ChannelName
    settings: type[S] | None
    configured: Callable[[S], bool]
    connect: Callable[[S, Host], Sequence[Endpoint]]
    turned_on_by: str = ""
    beside_terminal: Callable[[S], bool] = lambda _settings: False
