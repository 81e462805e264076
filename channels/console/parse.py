"""A line typed in the terminal as an event."""

from __future__ import annotations

from bot.domain.message import Address, ChatKind, Inbound, InboundKind, Sender, clean

ADDRESS = Address("terminal")


def parse(line: str, number: str) -> Inbound:
    """The message that a person typed; `number` names the line for ever."""
    text = clean(line)
    return Inbound(
        request_id=f"console-{number}",
        address=ADDRESS,
        chat_kind=ChatKind.PRIVATE,
        kind=InboundKind.TEXT,
        text=text,
        sender=Sender(id="terminal"),
        provider_id=number,
        chat_name="terminal",
    )
