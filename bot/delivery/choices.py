"""Choices that a platform shows as text: the numbered list, and the words that name one of it.

A person answers with the number or with the words behind it. That counts as a choice among those
of the newest reply of the chat, or of the message that the person quoted, however old that is.
Once another reply is stored, a bare number is just a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.message import Inbound, InboundKind
from bot.domain.reply import PartBody
from bot.leases.runtime import Runtime
from storage import chats, outbox
from storage.chats import Chat
from storage.statements.tx import Tx


def offer(tx: Tx, rt: Runtime, chat: Chat, parts: Sequence[PartBody]) -> None:
    """Keep the choices that the newest reply of the chat offers. The chat is locked."""
    carrier = rt.carriers.get(chat.account)
    if carrier is None:
        return
    offered = carrier.offered(parts) or None
    if offered != chat.offered:
        chats.offer(tx, chat.id, offered)


def chosen(tx: Tx, rt: Runtime, chat: Chat, message: Inbound) -> Inbound:
    """The message as the press of a button, if its words name a choice; else the message itself."""
    carrier = rt.carriers.get(chat.account)
    if carrier is None or message.kind is not InboundKind.TEXT or message.forwarded_from:
        return message
    offered = _replied_to(tx, rt, chat, message) or chat.offered
    button = carrier.choice_of(offered, message.text) if offered else None
    if button is None:
        return message
    extra = {**message.extra, "typed": message.text}
    return replace(
        message, kind=InboundKind.BUTTON, text=button.label, button=button.data, extra=extra
    )


def _replied_to(tx: Tx, rt: Runtime, chat: Chat, message: Inbound) -> str:
    if message.quoted is None:
        return ""
    part = outbox.by_receipt(tx, chat.account, message.quoted.provider_id)
    if part is None or part.chat != chat.id:
        return ""
    return rt.carriers[chat.account].offered([part.body])
