"""The turn: the agent's view of a run, and the protocol of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from bot.domain.message import Attachment, ChannelName, ChatKind, Quoted
from bot.domain.reminders import Reminders
from bot.domain.reply import Reply


class AttachmentFile(Protocol):
    """A file of a message; nothing is fetched before it is asked for."""

    @property
    def info(self) -> Attachment: ...

    async def read(self) -> bytes:
        """The file's bytes. Raises AttachmentUnavailable with a reason that can be told."""


@dataclass(frozen=True, slots=True)
class TurnMessage:
    """One message of a turn. `sent_at` in epoch seconds; `kind` as in `InboundKind`.

    `forwarded_from` names the first author of a forwarded message, empty for one's own.
    """

    request_id: str
    text: str
    kind: str
    sender_id: str
    sender_name: str
    sent_at: float
    attachments: tuple[AttachmentFile, ...] = ()
    quoted: Quoted | None = None
    button: str = ""
    edited: bool = False
    forwarded_from: str = ""


@dataclass(frozen=True, slots=True)
class TurnChat:
    """The chat a turn belongs to. `id` is ours and stable, `address` the platform's."""

    id: int
    channel: ChannelName
    address: str
    topic: str
    kind: ChatKind
    name: str
    language: str


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """An earlier message of the chat: `role` is `user` or `assistant`; `at` epoch seconds.

    `sender_name` is who said it, where that is a person: in a group there are several.
    """

    role: str
    text: str
    at: float
    sender_name: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """The price of one call of a model, in tokens."""

    input_tokens: int = 0
    output_tokens: int = 0


class Turn(Protocol):
    """One turn. Everything here survives a crash: ask again and get the same."""

    @property
    def text(self) -> str:
        """The texts of all messages, one a line."""

    @property
    def messages(self) -> Sequence[TurnMessage]: ...

    @property
    def history(self) -> Sequence[HistoryMessage]:
        """The chat before this turn, oldest first; notices and apologies left out."""

    @property
    def chat(self) -> TurnChat: ...

    @property
    def run_id(self) -> int: ...

    @property
    def request_id(self) -> str: ...

    @property
    def attempt(self) -> int:
        """1 for the first try."""

    @property
    def interrupted(self) -> bool:
        """True when an earlier attempt was cut off."""

    @property
    def deadline(self) -> float:
        """Epoch seconds after which the turn is given up."""

    @property
    def reminders(self) -> Reminders: ...

    async def step(
        self,
        key: str,
        call: Callable[[], Awaitable[Any] | Any],
        *,
        safe_to_repeat: bool = False,
        cost: Callable[[Any], Cost] | None = None,
    ) -> Any:
        """Do `call` once in the life of this turn and return its stored result.

        A coroutine function is awaited on the loop; anything else is called in a thread, so
        that it may block, and what it returns is awaited if it can be. The result must be
        JSON. With `cost` the step counts as a call of a model, and what `cost` reads from
        the result is stored with it. Raises StepInterrupted when the step was begun before,
        left no result, and was not declared safe to repeat; a call that raised Retry counts
        as not begun.
        """

    def idempotency_key(self, action: str) -> str:
        """A key for `action` that is the same in every attempt of this turn."""


class Agent(Protocol):
    """Answers a turn. None or a silent Reply ends the turn without words.

    Raises Retry or GiveUp on purpose; anything else counts as a failure.
    """

    async def __call__(self, turn: Turn) -> Reply | str | None: ...


F = TypeVar("F", bound=Callable[..., Any])
_SAFE = "answerback_safe_to_repeat"


def safe_to_repeat(function: F) -> F:
    """Declare that a tool may be called again after a crash: it only reads, or whom it calls
    honours the `idempotency_key`, which is the same each time. Decorates the tool."""
    setattr(function, _SAFE, True)
    return function


def is_safe_to_repeat(function: Callable[..., Any]) -> bool:
    """Tell whether the tool's author declared it so."""
    return getattr(function, _SAFE, False) is True
