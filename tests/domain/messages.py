"""Messages as the tests of this folder need them."""

from __future__ import annotations

from bot.domain.message import Address, ChatKind, Inbound, InboundKind, Sender


def said(text: str, *, command: str = "") -> Inbound:
    return Inbound(
        request_id="wa-SM1",
        address=Address("whatsapp:+15550100"),
        chat_kind=ChatKind.PRIVATE,
        kind=InboundKind.TEXT,
        text=text,
        sender=Sender("1"),
        provider_id="SM1",
        command=command,
    )
