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
    def info(self) -> Attachment:
        """The file's kind, name, type and size, as far as the platform told them."""

    async def read(self) -> bytes:
        """Fetch the file's bytes. Raises AttachmentUnavailable with a reason that can be told:
        the platform has it no more, or it is too large (20 MB on Telegram)."""


@dataclass(frozen=True, slots=True)
class TurnMessage:
    """One message of a turn."""

    request_id: str
    """The name by which `answerback status` knows it."""
    text: str
    """The words; a description in brackets for what has none, such as `[photo]`."""
    kind: str
    """One of `InboundKind`."""
    sender_id: str
    """The platform's id of its author."""
    sender_name: str
    """The name that its author goes by, which may be anything."""
    sent_at: float
    """Epoch seconds."""
    attachments: tuple[AttachmentFile, ...] = ()
    """Its files; `await file.read()` fetches one."""
    quoted: Quoted | None = None
    """The message that the person replied to."""
    button: str = ""
    """The data of the button that was pressed; its label is the `text`."""
    edited: bool = False
    """True when its author changed it after sending it."""
    forwarded_from: str = ""
    """The name of the first author of a forwarded message, empty for one's own."""


@dataclass(frozen=True, slots=True)
class TurnChat:
    """The chat a turn belongs to."""

    id: int
    """Our number of it, under which you keep what you know: it outlives a change of address, and
    of two chats that turn out to be one the older keeps it."""
    channel: ChannelName
    """`telegram`, `whatsapp` (through Twilio), `whatsapp-cloud` (through Meta), `web`, `console`,
    or a channel of yours."""
    address: str
    """The platform's name of it: a number on Telegram, `whatsapp:+1...` on WhatsApp."""
    topic: str
    """The topic of a forum, empty elsewhere."""
    kind: ChatKind
    """With one person, in a group, or a broadcast."""
    name: str
    """The group's title, or the person's name."""
    language: str
    """A language tag such as `pt-br`, empty where the platform tells none."""


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """An earlier message of the chat."""

    role: str
    """`user` or `assistant`."""
    text: str
    """The words as they were written or shown."""
    at: float
    """Epoch seconds."""
    sender_name: str = ""
    """Its author, where that is a person: in a group there are several."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The price of one call of a model, in tokens, as the `cost` of `turn.step` returns it.
    `runs show` and the metrics add it up."""

    input_tokens: int = 0
    """Tokens that the model read."""
    output_tokens: int = 0
    """Tokens that it wrote."""


class Turn(Protocol):
    """One turn. Everything here survives a crash: ask again and get the same."""

    @property
    def text(self) -> str:
        """The texts of all messages, one a line."""

    @property
    def messages(self) -> Sequence[TurnMessage]:
        """The messages to be answered, oldest first: one, or those that came while the chat was
        busy, or what belongs together (an album, the pieces of a long text)."""

    @property
    def history(self) -> Sequence[HistoryMessage]:
        """The chat before this turn, oldest first; notices and apologies left out."""

    @property
    def chat(self) -> TurnChat:
        """The chat that is answered."""

    @property
    def run_id(self) -> int:
        """The number by which `answerback runs show` knows this turn."""

    @property
    def request_id(self) -> str:
        """The name of its first message."""

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
    def reminders(self) -> Reminders:
        """The reminders of this chat, to set, list and cancel."""

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
        """A key for `action` that is the same in every attempt of this turn: for services that
        do nothing twice under one key."""

    def hand_over(self, reason: str) -> None:
        """Ask for a person. When this turn ends, what it returns is sent, the person in the chat
        is told that somebody will answer, and no agent answers there until an operator gives the
        chat back. `reason` is for operators. Asked in a step, it holds once that is stored; else
        once the turn returns. Asked again, the last reason counts."""


class Agent(Protocol):
    """The function that `AGENT=package.module:function` names: it answers a turn. A plain `def`
    is one too, and runs in a thread.

    A text is Markdown; None or a silent Reply ends the turn without words. It raises Retry or
    GiveUp on purpose; anything else that it raises counts as a failure.
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
