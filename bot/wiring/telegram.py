"""A Telegram bot's updates, read with who the bot is."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from bot.domain.errors import DatabaseUnavailable, PollConflict, PollRefused, PollUnavailable
from bot.domain.message import Event
from bot.domain.retry import backoff
from bot.flows.runtime import Runtime
from channels.telegram.channel import TelegramChannel
from channels.telegram.parse import BotIdentity, parse
from storage import accounts

_log = logging.getLogger("answerback.telegram")


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

    async def introduce(self, rt: Runtime, account: int) -> None:
        """Learn who we are and set the menu of commands; tried until it works."""
        tries = 0
        while True:
            tries += 1
            try:
                self._me = await self._channel.me()
                await rt.db.write(accounts.set_name, account, self._me.username)
                await self._channel.set_commands(_menus(rt))
            except (PollUnavailable, PollConflict, PollRefused, DatabaseUnavailable) as error:
                wait = backoff(tries, rt.clock.jitter())
                _log.warning("getMe or setMyCommands failed, again in %.0f s: %s", wait, error)
                await rt.clock.sleep(wait)
            else:
                return


def _menus(rt: Runtime) -> Mapping[str, Sequence[tuple[str, str]]]:
    languages = [tag for tag in rt.words.languages if len(tag) == 2]
    return {"": rt.words.menu(), **{tag: rt.words.menu(tag) for tag in languages}}
