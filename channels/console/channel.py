"""One terminal as a channel, and what is typed there as a message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.domain.delivery import Lookup, NotSent, Outcome, Sent, Unknown
from bot.domain.errors import AttachmentUnavailable
from bot.domain.message import (
    Address,
    Attachment,
    ChatKind,
    Inbound,
    InboundKind,
    Sender,
    clean,
)
from bot.domain.plugin import Terminal
from bot.domain.ports import Recipient, SendRef, Traits
from bot.domain.reply import FileOut, PartBody, Reply
from channels.console import NAME
from channels.text import is_blank

ADDRESS = Address("terminal")


class ConsoleChannel:
    """One terminal; a part is delivered when its line is written out. `write` is None in a process
    that has no terminal, which then sends nothing there."""

    name = NAME
    account = "local"
    traits = Traits()

    def __init__(self, write: Terminal | None) -> None:
        self._write = write

    async def open(self) -> None:
        """Nothing to open: the terminal is there."""

    async def close(self) -> None:
        """Nothing to close."""

    def compose(self, reply: Reply, to: Recipient) -> Sequence[PartBody]:
        lines = [] if is_blank(reply.text) else [reply.text]
        lines += [_file(f) for f in reply.files]
        lines += [f"  ({b.data or b.label}) {b.label} {b.url}".rstrip() for b in reply.buttons]
        text = "\n".join(lines)
        # A line is its text: nothing else goes on the wire.
        return [PartBody(text, "{}")] if text else []

    def recall(self, message: Inbound, sent: Iterable[PartBody]) -> Inbound:
        """A choice is typed as it is shown."""
        return message

    async def send(self, to: Recipient, body: PartBody, ref: SendRef) -> Outcome:
        if self._write is None:
            return NotSent("this process has no terminal")
        try:
            await self._write(body.text, to.reply_to)
        except OSError as error:
            return Unknown(f"the terminal is gone: {type(error).__name__}")
        return Sent(f"line-{ref.part}-{ref.attempt}")

    async def look_up(
        self, to: Recipient, body: PartBody, ref: SendRef, owned: frozenset[str]
    ) -> Sent | Lookup:
        """A terminal remembers nothing."""
        return Lookup.CANNOT_TELL

    async def typing(self, to: Recipient) -> None:
        """A terminal shows the cursor."""

    async def acknowledge(self, callback_id: str, text: str = "") -> None:
        """There are no buttons to press."""

    async def fetch(self, attachment: Attachment) -> bytes:
        raise AttachmentUnavailable("the terminal carries no files")


def _file(file: FileOut) -> str:
    """A file in words: its caption or name, its address, and below it the text that is in it."""
    named = (f"[{file.kind}]", file.caption or file.name, file.url)
    line = " ".join(word for word in named if word)
    return line if is_blank(file.content) else f"{line}\n{file.content.rstrip()}"


def request_id(number: str) -> str:
    """The name of the message that was typed under this number."""
    return f"console-{number}"


def parse(line: str, number: str) -> Inbound:
    """The message that a person typed; `number` names the line for ever."""
    text = clean(line)
    return Inbound(
        request_id=request_id(number),
        address=ADDRESS,
        chat_kind=ChatKind.PRIVATE,
        kind=InboundKind.TEXT,
        text=text,
        sender=Sender(id="terminal"),
        provider_id=number,
        chat_name="terminal",
    )
