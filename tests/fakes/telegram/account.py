"""The methods about the bot itself: its name, its updates, its webhook, its files."""

from __future__ import annotations

import asyncio
import re

from tests.fakes.recording import Json
from tests.fakes.telegram.bot import Bot
from tests.fakes.telegram.checks import Refusal
from tests.fakes.telegram.webhook import Hook

GET_FILE_MAX = 20 * 1024 * 1024
SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")


def get_me(bot: Bot, params: Json) -> Json:
    return bot.user


async def get_updates(bot: Bot, params: Json) -> list[Json]:
    """Confirm what is below the offset, then wait for something to give. Raises Refusal 409
    when a webhook is set or another poller came; the newest poller wins."""
    _refuse_beside_webhook(bot)
    if params.get("allowed_updates") is not None:
        bot.queue.allowed = list(params["allowed_updates"])
    offset = int(params.get("offset", 0))
    if offset:
        bot.queue.confirm_below(offset)
    limit = min(max(int(params.get("limit", 100)), 1), 100)
    if bot.poller is not None:
        bot.poller.set()
    ousted = bot.poller = asyncio.Event()
    bot.record.changed()
    try:
        await _until_given(bot, ousted, min(float(params.get("timeout", 0)), 50.0))
    finally:
        if bot.poller is ousted:
            bot.poller = None
    if ousted.is_set():
        _refuse_beside_webhook(bot)
        why = "terminated by other getUpdates request"
        only_one = "make sure that only one bot instance is running"
        raise Refusal(409, f"Conflict: {why}; {only_one}")
    due = [p for p in bot.queue.pending if offset <= 0 or p.id >= offset]
    return [p.update for p in due[:limit]]


async def _until_given(bot: Bot, ousted: asyncio.Event, seconds: float) -> None:
    try:
        await bot.record.wait_for(lambda: bot.queue.pending or ousted.is_set(), seconds)
    except AssertionError:
        return


def _refuse_beside_webhook(bot: Bot) -> None:
    if bot.webhook.hook is not None:
        why = "can't use getUpdates method while webhook is active"
        raise Refusal(409, f"Conflict: {why}; use deleteWebhook to delete the webhook first")


async def set_webhook(bot: Bot, params: Json) -> bool:
    url = str(params.get("url", ""))
    secret = str(params.get("secret_token", ""))
    if "secret_token" in params and not SECRET.fullmatch(secret):
        raise Refusal(400, "Bad Request: secret token contains unallowed characters")
    if url and not url.startswith(("https://", "http://127.0.0.1", "http://localhost")):
        raise Refusal(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
    if params.get("allowed_updates") is not None:
        bot.queue.allowed = list(params["allowed_updates"])
    if params.get("drop_pending_updates"):
        bot.queue.clear()
    hook = Hook(url, secret, int(params.get("max_connections", 40))) if url else None
    if hook != bot.webhook.hook:
        await bot.webhook.point(hook)
    if hook is not None and bot.poller is not None:
        bot.poller.set()
    bot.record.changed()
    return True


async def delete_webhook(bot: Bot, params: Json) -> bool:
    if params.get("drop_pending_updates"):
        bot.queue.clear()
    await bot.webhook.point(None)
    return True


def get_webhook_info(bot: Bot, params: Json) -> Json:
    hook = bot.webhook.hook
    info: Json = {
        "url": hook.url if hook else "",
        "has_custom_certificate": False,
        "pending_update_count": len(bot.queue.pending),
    }
    if hook is not None:
        info |= {"max_connections": hook.max_connections, "ip_address": "127.0.0.1"}
    if bot.webhook.last_error is not None:
        at, message = bot.webhook.last_error
        info |= {"last_error_date": at, "last_error_message": message}
    if bot.queue.allowed:
        info["allowed_updates"] = bot.queue.allowed
    return info


def set_my_commands(bot: Bot, params: Json) -> bool:
    for command in params.get("commands", []):
        if not re.fullmatch(r"[a-z0-9_]{1,32}", str(command.get("command", ""))):
            raise Refusal(400, "Bad Request: BOT_COMMAND_INVALID")
    bot.commands = list(params.get("commands", []))
    return True


def get_my_commands(bot: Bot, params: Json) -> list[Json]:
    return bot.commands


def answer_callback_query(bot: Bot, params: Json) -> bool:
    if not params.get("callback_query_id"):
        why = "query is too old and response timeout expired or query ID is invalid"
        raise Refusal(400, f"Bad Request: {why}")
    bot.answered.append(params)
    return True


def get_file(bot: Bot, params: Json) -> Json:
    file_id = str(params.get("file_id", ""))
    stored = bot.files.get(file_id)
    if stored is None:
        why = "wrong file_id or the file is temporarily unavailable"
        raise Refusal(400, f"Bad Request: {why}")
    if stored.size > GET_FILE_MAX:
        raise Refusal(400, "Bad Request: file is too big")
    return {
        "file_id": file_id,
        "file_unique_id": f"unique-{file_id}",
        "file_size": stored.size,
        "file_path": stored.path,
    }
