"""The agent of all four, python-telegram-bot's `Bot`, and the words of a webhook."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from telegram.ext import AIORateLimiter, ExtBot

from benchmarks.proof.errands import Errand

TOKEN = os.environ.get("BOT_TOKEN", "1:none")
API = os.environ.get("BOT_API", "http://127.0.0.1:1") + "/bot"
SECRET = os.environ.get("BOT_SECRET", "")
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"
AGENT_TRIES = 3
"""Attempts of the agent, before the person is told that it failed."""
SEND_TRIES = 10
"""Attempts of a send, where the library repeats by itself what failed."""


def limiter() -> AIORateLimiter:
    """The limiter that its pages advise against 429; it waits and repeats after one."""
    return AIORateLimiter(max_retries=SEND_TRIES)


def new_bot() -> ExtBot[Any]:
    """A bot that only sends: not initialized, since a start must not depend on Telegram."""
    return ExtBot(TOKEN, base_url=API, rate_limiter=limiter())


async def think(text: str, attempt: int) -> Sequence[str]:
    """The agent: the messages of its answer, none for small talk. Raises Failed."""
    if " takes " not in text:
        return ()
    errand = Errand.read(text)
    await asyncio.sleep(errand.takes)
    return errand.answer(attempt)


def sorry(text: str) -> str:
    """The words of an apology, by which the judge finds its message."""
    return f"sorry: {Errand.read(text).name}"


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a person, as the webhook brought it."""

    update: int
    chat: int
    text: str

    @staticmethod
    def read(update: Mapping[str, Any]) -> Said:
        """The message of an update."""
        message = update["message"]
        return Said(update["update_id"], message["chat"]["id"], message["text"])
