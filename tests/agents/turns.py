"""A turn for the tests of agents, with steps that outlive an attempt."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot.domain.errors import AttachmentUnavailable, ReminderRefused, StepInterrupted
from bot.domain.message import Attachment, ChannelName, ChatKind, InboundKind
from bot.domain.reminders import Reminder, Reminders
from bot.domain.turn import Cost, HistoryMessage, TurnChat, TurnMessage

CHAT = TurnChat(7, ChannelName("telegram"), "700100201", "", ChatKind.PRIVATE, "Ada", "en")


@dataclass(frozen=True)
class FakeFile:
    """A file of so many bytes; one that is gone says why."""

    info: Attachment
    content: bytes = b""
    gone: str = ""

    async def read(self) -> bytes:
        if self.gone:
            raise AttachmentUnavailable(self.gone)
        return self.content


class NoReminders:
    """`Reminders` where nothing can be kept."""

    async def add(self, when: str, text: str, *, key: str, zone: str = "") -> Reminder:
        raise ReminderRefused("reminders can't be set here")

    async def waiting(self) -> Sequence[Reminder]:
        return ()

    async def cancel(self, number: int) -> bool:
        return False

    def now(self, zone: str = "") -> str:
        return "Monday 2027-01-11 09:00 (UTC)"


@dataclass(frozen=True)
class FakeTurn:
    """`Turn` without a database. `again()` is the next attempt after a crash: it shares the
    results that were stored and the names of the steps that had begun."""

    messages: Sequence[TurnMessage]
    history: Sequence[HistoryMessage] = ()
    chat: TurnChat = CHAT
    run_id: int = 11
    request_id: str = "tg-700100201-41"
    attempt: int = 1
    interrupted: bool = False
    deadline: float = 2_000_000_000.0
    results: dict[str, str] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    reminders: Reminders = field(default_factory=NoReminders)
    handoffs: list[str] = field(default_factory=list)

    def hand_over(self, reason: str) -> None:
        self.handoffs.append(reason)

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
        if key in self.results:
            return json.loads(self.results[key])
        if key in self.begun and not safe_to_repeat:
            raise StepInterrupted(key)
        self.begun.add(key)
        result = call()
        if inspect.isawaitable(result):
            result = await result
        self.results[key] = json.dumps(result)
        return result

    def idempotency_key(self, action: str) -> str:
        return f"{self.run_id}-{action}"

    def again(self) -> FakeTurn:
        return replace(self, attempt=self.attempt + 1, interrupted=True)


def message(text: str, kind: InboundKind = InboundKind.TEXT, **changes: Any) -> TurnMessage:
    """One message of Ada's."""
    plain = TurnMessage("tg-700100201-41", text, kind, "700100201", "Ada", 1_800_003_600.0)
    return replace(plain, **changes)


def turn(*texts: str, **changes: Any) -> FakeTurn:
    """A turn of these texts."""
    return replace(FakeTurn(tuple(message(text) for text in texts)), **changes)
