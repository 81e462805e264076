"""The bot itself: who it is, its updates, its webhook, its commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from telegram.error import TelegramError

from channels.telegram.addressing import BotIdentity
from channels.telegram.api import BotApi, bot_api
from channels.telegram.config import TelegramConfig, account_of
from channels.telegram.errors import TelegramUnavailable, trouble_of
from channels.telegram.fields import Raw, moment, whole, words
from channels.telegram.rules import ALLOWED_UPDATES, CHANNEL_UPDATES

POLL_MARGIN = 10.0
"""Seconds beyond a poll's own time after which its connection counts as dead."""

_SHORT = 20.0
"""Seconds to wait for an answer about the bot itself."""


@dataclass(frozen=True, slots=True)
class WebhookInfo:
    """What Telegram sees of the webhook. Times in epoch seconds.

    `last_error` stays after later successes: its age says whether it still matters.
    """

    url: str
    pending: int
    last_error: str = ""
    last_error_at: float | None = None
    last_sync_error_at: float | None = None
    ip_address: str = ""
    max_connections: int | None = None
    allowed_updates: tuple[str, ...] = ()


class TelegramAccount:
    """One bot account. Every method raises TelegramUnavailable, TelegramTokenInvalid,
    TelegramConflict or TelegramRefused (of which TelegramMethodUnknown is one)."""

    def __init__(self, config: TelegramConfig) -> None:
        self.config = config
        self._api: BotApi = bot_api(config)

    @property
    def account(self) -> str:
        return account_of(self.config.token)

    @property
    def allowed_updates(self) -> tuple[str, ...]:
        """The kinds of updates that this bot wants."""
        return ALLOWED_UPDATES + (CHANNEL_UPDATES if self.config.channel_posts else ())

    async def _ask(
        self, method: str, params: Mapping[str, object], read_timeout: float = _SHORT
    ) -> object:
        try:
            return await self._api.call(method, params, read_timeout=read_timeout)
        except TelegramError as error:
            raise trouble_of(error, method) from error

    async def _ask_for_object(self, method: str, params: Mapping[str, object]) -> Raw:
        result = await self._ask(method, params)
        if not isinstance(result, dict):
            raise TelegramUnavailable(f"{method} gave no object")
        return result

    async def me(self) -> BotIdentity:
        """Who the token makes us."""
        user = await self._ask_for_object("getMe", {})
        number = whole(user, "id")
        if number is None:
            raise TelegramUnavailable("getMe gave no id")
        return BotIdentity(number, words(user, "username"))

    async def sees_all_groups(self) -> bool:
        """Whether the bot reads every message of its groups (privacy mode is off)."""
        user = await self._ask_for_object("getMe", {})
        return user.get("can_read_all_group_messages") is True

    async def updates(self, offset: int | None, timeout: float) -> list[dict[str, object]]:
        """Wait up to `timeout` s for updates from `offset` on; asking confirms those before.

        Without an offset nothing is confirmed. A connection that stalls is noticed.
        """
        params: dict[str, object] = {
            "timeout": int(timeout),
            "limit": 100,
            "allowed_updates": list(self.allowed_updates),
        }
        if offset is not None:
            params["offset"] = offset
        result = await self._ask("getUpdates", params, timeout + POLL_MARGIN)
        if not isinstance(result, list):
            raise TelegramUnavailable("getUpdates gave no list")
        return [update for update in result if isinstance(update, dict)]

    async def set_webhook(
        self,
        url: str,
        secret: str,
        *,
        allowed_updates: Sequence[str] | None = None,
        max_connections: int = 40,
        drop_pending: bool = False,
    ) -> None:
        """Have updates delivered to `url`. `drop_pending` throws away what waits."""
        params: dict[str, object] = {
            "url": url,
            "secret_token": secret,
            "allowed_updates": list(allowed_updates or self.allowed_updates),
            "max_connections": max_connections,
        }
        if drop_pending:
            params["drop_pending_updates"] = True
        await self._ask("setWebhook", params)

    async def webhook_info(self) -> WebhookInfo:
        """How delivery to the webhook is doing."""
        info = await self._ask_for_object("getWebhookInfo", {})
        kinds = info.get("allowed_updates")
        return WebhookInfo(
            url=words(info, "url"),
            pending=whole(info, "pending_update_count") or 0,
            last_error=words(info, "last_error_message"),
            last_error_at=moment(info, "last_error_date"),
            last_sync_error_at=moment(info, "last_synchronization_error_date"),
            ip_address=words(info, "ip_address"),
            max_connections=whole(info, "max_connections"),
            allowed_updates=tuple(map(str, kinds)) if isinstance(kinds, list) else (),
        )

    async def delete_webhook(self) -> None:
        """Stop delivery; what waits stays and can be polled."""
        await self._ask("deleteWebhook", {})

    async def set_commands(self, commands: Mapping[str, Sequence[tuple[str, str]]]) -> None:
        """The command menu by two-letter language; the empty language is for all others."""
        for language, menu in commands.items():
            listed = [{"command": name, "description": words} for name, words in menu]
            params: dict[str, object] = {"commands": listed}
            if language:
                params["language_code"] = language
            await self._ask("setMyCommands", params)
