"""python-telegram-bot alone: `run_polling`, one handler, the limiter, updates side by side.

Its page on network errors knows no one way for all bots, and leaves it to each: here, as in its
examples, an error is logged.
"""

from __future__ import annotations

import logging
from typing import Any

from telegram import Update
from telegram.ext import Application, ContextTypes, MessageHandler, filters

from benchmarks.peers.bots.common import AGENT_TRIES, API, TOKEN, limiter, sorry, think
from benchmarks.proof.errands import Failed

Context = ContextTypes.DEFAULT_TYPE
logger = logging.getLogger(__name__)


async def answer(update: Update, _: Context) -> None:
    """Let the agent try a few times, and reply."""
    message = update.message
    if message is None or message.text is None:
        return
    for attempt in range(1, AGENT_TRIES + 1):
        try:
            parts = await think(message.text, attempt)
        except Failed:
            continue
        for part in parts:
            await message.reply_text(part)
        return
    await message.reply_text(sorry(message.text))


async def log_error(_: object, context: Context) -> None:
    """Its examples log what a handler raised, and go on."""
    logger.error("an update could not be handled: %r", context.error)


def application() -> Application[Any, Any, Any, Any, Any, Any]:
    """The bot."""
    builder = Application.builder().token(TOKEN).base_url(API)
    made = builder.rate_limiter(limiter()).concurrent_updates(True).build()
    made.add_handler(MessageHandler(filters.TEXT & ~filters.COMMAND, answer))
    made.add_error_handler(log_error)
    return made


if __name__ == "__main__":
    application().run_polling(allowed_updates=Update.ALL_TYPES, bootstrap_retries=-1)
