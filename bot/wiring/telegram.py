"""A Telegram bot of ours: its channel, its updates, its webhook."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bot.domain.errors import (
    ConfigurationError,
    DatabaseUnavailable,
    PollConflict,
    PollRefused,
    PollUnavailable,
)
from bot.domain.message import Event, PayloadError, clean
from bot.domain.ports import Clock
from bot.http import NotReadable, Posted
from bot.leases.runtime import Runtime
from bot.settings import Settings
from bot.texts import Text, Words
from channels.telegram.channel import TelegramChannel
from channels.telegram.config import TelegramConfig
from channels.telegram.errors import TelegramRefused
from channels.telegram.parse import BotIdentity, parse
from channels.telegram.verify import SECRET_HEADER, secret_matches
from storage import accounts
from storage.notify import READY

_log = logging.getLogger("answerback.telegram")
_TROUBLE = (PollUnavailable, PollConflict, PollRefused, DatabaseUnavailable)
_MEET_WITHIN = 5.0
TELEGRAM_PATH = "/telegram/webhook"


def telegram_channel(settings: Settings, clock: Clock, words: Words) -> TelegramChannel:
    """The bot's channel, not yet open. Raises ConfigurationError."""
    try:
        config = TelegramConfig(
            token=settings.telegram_bot_token,
            api_url=settings.telegram_api_url,
            read_timeout=settings.telegram_read_timeout,
            max_parts=settings.max_parts,
            channel_posts=settings.telegram_channel_posts,
            long_reply=lambda language: words.say(Text.LONG_REPLY_FILE, language),
        )
    except ValueError as error:
        raise ConfigurationError(f"TELEGRAM_BOT_TOKEN: {error}") from error
    return TelegramChannel(config, clock)


class TelegramUpdates:
    """Asks for updates and parses them. The bot's user name comes from the database until
    Telegram has told it, so that a start without Telegram still knows what concerns us."""

    def __init__(self, channel: TelegramChannel, name: str) -> None:
        self._channel = channel
        self._me = BotIdentity(int(channel.account), name)

    async def updates(self, offset: int | None, timeout: float) -> Sequence[Mapping[str, object]]:
        return await self._channel.updates(offset, timeout)

    def parse(self, update: Mapping[str, object]) -> tuple[Event, ...]:
        """The events of an update. Raises PayloadError."""
        return parse(update, self._me, channel_posts=self._channel.config.channel_posts)

    async def meet(self, rt: Runtime, account: int) -> None:
        """Ask once who we are, where nobody knows yet: without a name no mention concerns us."""
        if self._me.username:
            return
        try:
            async with asyncio.timeout(_MEET_WITHIN):
                await self._learn(rt, account)
        except (*_TROUBLE, TimeoutError) as error:
            _log.warning("who this bot is could not be asked yet: %s", error)

    async def _learn(self, rt: Runtime, account: int) -> None:
        self._me = await self._channel.me()
        await rt.db.write(accounts.set_name, account, self._me.username)

    async def probe(self, rt: Runtime, account: int) -> None:
        """While the account is down, ask whether its token works again."""
        try:
            rows = await rt.db.read(accounts.listed)
            if not any(row.id == account and row.down_since is not None for row in rows):
                return
            await self._learn(rt, account)
            if await rt.db.write(accounts.mark_up, account):
                _log.info("Telegram takes the token again")
                rt.wakeups.tell(READY)
        except _TROUBLE as error:
            _log.info("the channel is still down: %s", error)

    async def introduce(self, rt: Runtime, account: int) -> None:
        """Learn who we are and set the menu of commands; tried until it works or is refused."""
        tries = 0
        while True:
            tries += 1
            try:
                await self._learn(rt, account)
                await self._show_menu(rt)
            except _TROUBLE as error:
                wait = rt.retry.connection.after(tries, rt.clock.jitter())
                _log.warning("getMe or setMyCommands failed, again in %.0f s: %s", wait, error)
                await rt.clock.sleep(wait)
            else:
                return

    async def _show_menu(self, rt: Runtime) -> None:
        try:
            await self._channel.set_commands(_menus(rt))
        except TelegramRefused as error:
            _log.warning("there is no menu of commands: %s", error)


def _menus(rt: Runtime) -> Mapping[str, Sequence[tuple[str, str]]]:
    languages = [tag for tag in rt.words.languages if len(tag) == 2]
    return {"": rt.words.menu(), **{tag: rt.words.menu(tag) for tag in languages}}


@dataclass(frozen=True, slots=True)
class TelegramHook:
    """Where Telegram posts updates."""

    account: int
    updates: TelegramUpdates
    secret: str = field(repr=False)
    path: str = TELEGRAM_PATH
    channel: str = "telegram"
    content_type: str = "text/plain"
    acknowledgement: str = ""

    def authentic(self, posted: Posted) -> bool:
        return secret_matches(posted.headers.get(SECRET_HEADER), self.secret)

    def text(self, posted: Posted) -> str:
        """The body as it came. Raises NotReadable when it is not JSON: Telegram sends
        nothing else, so something between it and us broke it."""
        _json(posted.body)
        return clean(posted.body.decode("utf-8", "replace"))

    def events(self, posted: Posted) -> tuple[Event, ...]:
        update = _json(posted.body)
        if not isinstance(update, dict):
            raise PayloadError("an update is an object")
        return self.updates.parse(update)


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotReadable("the body is not JSON") from error
