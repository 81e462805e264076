"""People who write to a bot in a test, and what they hear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from bot.domain.message import (
    Address,
    Attachment,
    ChatKind,
    Inbound,
    InboundKind,
    Sender,
    clean,
)
from bot.domain.reply import Button
from bot.testing.channel import FakeChannel, Message


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a person sends. `kind` is one of the kinds of messages: document, photo, ..."""

    content: bytes
    name: str = "file.txt"
    mime: str = "text/plain"
    kind: str = "document"


class Line(Protocol):
    """The person's way to the bot, and the time that passes until it answers."""

    @property
    def channel(self) -> FakeChannel: ...

    def fresh(self) -> str:
        """A name that no other message has."""

    async def deliver(self, message: Inbound) -> None:
        """Hand the message to the bot, now or as soon as a process runs again."""

    async def settled(self) -> None:
        """Wait until nothing is left to do."""

    async def until(self, holds: Callable[[], bool], wanted: str) -> None:
        """Wait until it holds; AssertionError when nothing is left to do before."""


@dataclass
class Person:
    """One person, in a private chat with the bot."""

    name: str
    id: str
    language: str
    _line: Line
    _heard: int = 0

    async def says(
        self, text: str = "", *, files: Sequence[Upload] = (), delivered: int = 1
    ) -> None:
        """Write to the bot; `delivered` times, as a platform does that heard no acknowledgement.
        Returns as soon as the message is recorded, and while no process runs at once."""
        kind = InboundKind(files[0].kind) if files else InboundKind.TEXT
        name = self._line.fresh()
        attached = [self._attach(file, f"{name}-{n}") for n, file in enumerate(files)]
        message = self._message(name, kind, text, tuple(attached))
        for _ in range(delivered):
            await self._line.deliver(message)

    async def presses(self, label: str) -> None:
        """Press the newest button that has this label. Raises AssertionError: there is none."""
        shown = [button for message in reversed(self.messages) for button in message.buttons]
        button = next((one for one in shown if one.label == label and not one.url), None)
        if button is None:
            there = ", ".join(repr(one.label) for one in shown if not one.url) or "none"
            raise AssertionError(f"{self.name} sees no button {label!r}; there is {there}")
        await self._line.deliver(self._press(button))

    async def hears(self) -> list[str]:
        """Wait until the bot has nothing left to do; the texts that came since the last time."""
        __tracebackhide__ = True
        await self._line.settled()
        new = self.messages[self._heard :]
        self._heard = len(self.messages)
        return [message.text for message in new]

    async def hears_next(self) -> Message:
        """Wait for one more message, whatever else is under way. Raises AssertionError when the
        bot has nothing left to do before it comes."""
        __tracebackhide__ = True
        wanted = f"a message to {self.name}"
        await self._line.until(lambda: len(self.messages) > self._heard, wanted)
        self._heard += 1
        return self.messages[self._heard - 1]

    @property
    def messages(self) -> Sequence[Message]:
        """All that the person was sent, oldest first."""
        return self._line.channel.messages[self.id]

    @property
    def toasts(self) -> Sequence[str]:
        """The words that were shown over pressed buttons, oldest first."""
        return self._line.channel.toasts[self.id]

    def _attach(self, file: Upload, ref: str) -> Attachment:
        self._line.channel.uploads[ref] = file.content
        return Attachment(file.kind, ref, file.mime, file.name, len(file.content))

    def _press(self, button: Button) -> Inbound:
        name = self._line.fresh()
        press = self._message(name, InboundKind.BUTTON, button.label)
        return replace(press, button=button.data or button.label, callback_id=f"{self.id}:{name}")

    def _message(
        self,
        name: str,
        kind: InboundKind,
        text: str,
        attachments: tuple[Attachment, ...] = (),
    ) -> Inbound:
        return Inbound(
            request_id=f"message-{name}",
            address=Address(self.id),
            chat_kind=ChatKind.PRIVATE,
            kind=kind,
            text=clean(text),
            sender=Sender(self.id, self.name, language=self.language),
            provider_id=name,
            chat_name=self.name,
            attachments=attachments,
        )
