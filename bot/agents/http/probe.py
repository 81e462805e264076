"""Turns that no person sent, with which an agent's server is tried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot.domain.message import Attachment, ChannelName, ChatKind, InboundKind
from bot.domain.ports import Clock
from bot.domain.reminders import NoReminders
from bot.domain.turn import Cost, HistoryMessage, TurnChat, TurnMessage

_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
"""A PNG of one transparent pixel."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A turn in the shape of `bot.domain.turn.Turn`, with made-up messages."""

    request_id: str
    deadline: float
    messages: Sequence[TurnMessage]
    history: Sequence[HistoryMessage] = ()
    attempt: int = 1
    interrupted: bool = False
    run_id: int = 0
    chat: TurnChat = field(
        default_factory=lambda: TurnChat(
            0, ChannelName("console"), "check", "", ChatKind.PRIVATE, "Check", "en"
        )
    )

    @staticmethod
    def fresh(clock: Clock, seconds: float) -> Probe:
        """A plain turn that was never asked before, with so many seconds to its deadline."""
        probe = Probe("", clock.wall() + seconds, (said("Hello, who are you?"),))
        return probe.renamed(clock)

    def renamed(self, clock: Clock) -> Probe:
        """The same turn under an id of its own."""
        name, now = f"check-{clock.token()}", clock.wall()
        messages = [replace(message, request_id=name, sent_at=now) for message in self.messages]
        return replace(self, request_id=name, messages=tuple(messages))

    def with_history(self, count: int) -> Probe:
        """The same turn after so many earlier messages, of both sides in turn."""
        at = self.deadline - 86_400
        roles = ("user", "assistant")
        past = [HistoryMessage(roles[n % 2], f"Message {n}", at + n) for n in range(count)]
        return replace(self, history=tuple(past))

    @property
    def reminders(self) -> NoReminders:
        return NoReminders()

    @property
    def text(self) -> str:
        return "\n".join(message.text for message in self.messages)

    async def step(
        self,
        key: str,
        call: Callable[[], Awaitable[Any] | Any],
        *,
        safe_to_repeat: bool = False,
        cost: Callable[[Any], Cost] | None = None,
    ) -> Any:
        raise NotImplementedError("a server has no steps of ours")

    def idempotency_key(self, action: str) -> str:
        return f"{self.request_id}-{action}"


@dataclass(frozen=True, slots=True)
class _Picture:
    info: Attachment

    async def read(self) -> bytes:
        return _PIXEL


def said(text: str) -> TurnMessage:
    """A text message."""
    return TurnMessage("", text, InboundKind.TEXT, "check", "Check", 0.0)


def photo(caption: str) -> TurnMessage:
    """A tiny picture with words under it."""
    picture = _Picture(Attachment("photo", "", "image/png", "pixel.png", len(_PIXEL)))
    return replace(said(caption), kind=InboundKind.PHOTO, attachments=(picture,))


def pressed(label: str, data: str) -> TurnMessage:
    """A press of a button that the agent had offered."""
    return replace(said(label), kind=InboundKind.BUTTON, button=data)
