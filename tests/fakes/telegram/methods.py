"""The methods that the fake knows, by their names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable

from tests.fakes.recording import Json
from tests.fakes.telegram import account, messages
from tests.fakes.telegram.bot import Bot

Method = Callable[[Bot, Json], object | Awaitable[object]]

METHODS: dict[str, Method] = {
    "getMe": account.get_me,
    "getUpdates": account.get_updates,
    "setWebhook": account.set_webhook,
    "deleteWebhook": account.delete_webhook,
    "getWebhookInfo": account.get_webhook_info,
    "setMyCommands": account.set_my_commands,
    "getMyCommands": account.get_my_commands,
    "answerCallbackQuery": account.answer_callback_query,
    "getFile": account.get_file,
    "sendMessage": messages.send_message,
    "editMessageText": messages.edit_message_text,
    "editMessageReplyMarkup": messages.edit_message_reply_markup,
    "deleteMessage": messages.delete_message,
    "sendChatAction": messages.send_chat_action,
    "sendMessageDraft": messages.send_message_draft,
    "setMessageReaction": messages.set_message_reaction,
} | {
    f"send{kind.title()}": messages.file_sender(kind)
    for kind in ("photo", "document", "voice", "audio", "video", "animation", "sticker")
}
_LOWER = {name.lower(): name for name in METHODS}


def canonical(name: str) -> str:
    """The method's own spelling; method names are case-insensitive on the wire."""
    return _LOWER.get(name.lower(), name)


async def run(bot: Bot, method: str, params: Json) -> object:
    """The result of one call. Raises Refusal."""
    result = METHODS[method](bot, params)
    return await result if isawaitable(result) else result
