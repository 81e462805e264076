"""Everything that an agent's author needs to import.

from bot.api import Reply, Turn

async def reply(turn: Turn) -> Reply | str | None:
    return f"You said: {turn.text}"
"""

from bot.domain.errors import (
    AttachmentUnavailable,
    GiveUp,
    ReminderRefused,
    Retry,
    StepInterrupted,
    StepResultInvalid,
)
from bot.domain.message import Attachment, ChannelName, ChatKind, InboundKind, Quoted
from bot.domain.reminders import Reminder, Reminders
from bot.domain.reply import Button, FileOut, Reply
from bot.domain.turn import (
    Agent,
    AttachmentFile,
    Cost,
    HistoryMessage,
    Turn,
    TurnChat,
    TurnMessage,
    safe_to_repeat,
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
    "Cost",
    "FileOut",
    "GiveUp",
    "HistoryMessage",
    "InboundKind",
    "Quoted",
    "Reminder",
    "ReminderRefused",
    "Reminders",
    "Reply",
    "Retry",
    "StepInterrupted",
    "StepResultInvalid",
    "Turn",
    "TurnChat",
    "TurnMessage",
    "safe_to_repeat",
    "wait",
]
