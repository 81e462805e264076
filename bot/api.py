"""What the author of an agent imports, and all of it.

from bot.api import Reply, Turn

async def reply(turn: Turn) -> Reply | str | None:
    return f"You said: {turn.text}"
"""

from bot.domain.errors import AttachmentUnavailable, GiveUp, Retry, StepInterrupted
from bot.domain.message import Attachment, ChannelName, ChatKind, InboundKind, Quoted
from bot.domain.reply import Button, FileOut, Reply
from bot.domain.turn import (
    Agent,
    AttachmentFile,
    HistoryMessage,
    Turn,
    TurnChat,
    TurnMessage,
)
from bot.threads import wait

__all__ = [
    "Agent",
    "Attachment",
    "AttachmentFile",
    "AttachmentUnavailable",
    "Button",
    "ChannelName",
    "ChatKind",
    "FileOut",
    "GiveUp",
    "HistoryMessage",
    "InboundKind",
    "Quoted",
    "Reply",
    "Retry",
    "StepInterrupted",
    "Turn",
    "TurnChat",
    "TurnMessage",
    "wait",
]
