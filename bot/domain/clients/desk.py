"""Ports of a channel whose people are not reached through a platform: their clients, a page or an
app, come and ask. The channel brings the pages; what it needs of us is the `Desk`.

Every question names the address that its asker has proven to be, and is about that chat alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from bot.domain.clients.journal import ChatEvent, Snapshot
from bot.domain.clients.turn_answer import TurnAnswer
from bot.domain.message import Address, Attachment, Inbound
from bot.domain.ports import SendRef

App = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[MutableMapping[str, Any]]],
        Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ],
    Awaitable[None],
]
"""An ASGI application."""

Named = Callable[[Address], str]
"""The request id of one message, as it would be under an address of its chat."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message is recorded: just now, or `again`; then `turn` says what became of it."""

    turn: TurnAnswer
    again: bool


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another message is recorded under this request id."""


@dataclass(frozen=True, slots=True)
class Page:
    """Messages of both sides, oldest first, and whether there are earlier ones."""

    messages: Sequence[ChatEvent]
    more: bool


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a chat, as it was handed in."""

    name: str
    mime: str
    content: bytes


class Wire(Protocol):
    """A channel's writing to those who follow. Each text is written once for all of them."""

    @property
    def beat(self) -> bytes:
        """The sign of life when there is nothing else."""

    def event(self, event: ChatEvent) -> bytes: ...

    def snapshot(self, snapshot: Snapshot) -> bytes: ...

    @property
    def resync(self) -> bytes:
        """The word that events were missed and a snapshot follows."""

    def goodbye(self, wait: float) -> bytes:
        """The last word of a process that leaves: come back in `wait` seconds, to any other."""


class Follower(Protocol):
    """One client that follows a chat."""

    def end(self, *, slow: bool = False) -> None:
        """Write nothing more to it; `slow`: because its client does not keep up."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces to be written, until this process leaves, the chat is another's, or the client
        was too slow to be worth waiting for."""


class Desk(Protocol):
    """The questions of clients, on one account. Every method raises DatabaseUnavailable."""

    async def take(self, message: Inbound, named: Named, body: str) -> Accepted | Conflict:
        """Record a message, once; `body` is what came over the wire. It has the request id that
        `named` gives for its address. Returns after the commit."""

    async def turn(self, who: Address, named: Named, wait: float = 0.0) -> TurnAnswer:
        """The turn status of a message; with `wait`, at most so many seconds later, as soon as that
        has changed."""

    async def history(self, who: Address, before: int | None, limit: int) -> Page:
        """Messages before the event with this number, or the latest."""

    async def seen(self, who: Address, n: int) -> int:
        """A client has shown everything up to this event; returns how many of our messages
        nobody has seen."""

    async def stop(self, who: Address) -> int:
        """Withdraw what runs and waits; returns how many turns that were."""

    def follow(
        self, who: Address, after: int | None, session: str, until: float
    ) -> AbstractAsyncContextManager[Follower]:
        """Follow the chat, until the session is over, at `until` (epoch seconds) or before: from
        a snapshot on, or from the event with this number on. It may begin before the chat has
        its first message."""

    async def claim(self, guest: Address, user: Address) -> bool:
        """The guest's chat becomes the user's, once. False: it is another user's already."""

    async def end_session(self, session: str, until: float) -> None:
        """Refuse a session from now on, by its name; its token runs out at `until`."""

    async def over(self, sessions: Sequence[tuple[Address, str]]) -> frozenset[str]:
        """Those of these sessions, given with the addresses that they open, that were ended, or
        whose guest has become a user."""

    async def write(self, ref: SendRef) -> bool:
        """Write a part into its chat's journal, once: it is sent when that is committed. False:
        the attempt is not the part's any more, and nothing was written."""

    async def written(self, ref: SendRef) -> bool:
        """Tell whether the part is in the journal; no earlier attempt writes it from then on."""

    async def keep_file(self, who: Address, file: StoredFile) -> Attachment:
        """Keep a file; its `ref` names it by its content, within the chat."""

    async def file(self, who: Address, ref: str) -> StoredFile | None:
        """A file of this chat; None where it has none of this name."""

    async def part(self, who: Address, part: int) -> str | None:
        """The wire of a part that this chat was sent; None where there is no such part."""

    async def attachment(self, ref: str) -> bytes | None:
        """A file's content, for the agent."""

    async def secret(self, name: str, fresh: str) -> str:
        """A secret of the account, made once: `fresh`, unless there is one."""


@dataclass(frozen=True, slots=True)
class Pages:
    """A channel's own pages: every path under `path`. `bind` hands the desk to the channel, in
    every process; `app` is asked for only where requests are taken in. `folder` keeps the files
    that people send; without it the database does."""

    path: str
    wire: Wire
    bind: Callable[[Desk], None]
    app: Callable[[], App]
    folder: str = ""
