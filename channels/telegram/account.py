"""The calls about the bot itself: its identity, its updates, its webhook, its commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from telegram.error import TelegramError

from bot.domain.message import Event
from channels.raw import Raw, integer, string, timestamp
from channels.telegram.api import BotApi, bot_api
from channels.telegram.errors import TelegramUnavailable, account_error
from channels.telegram.parse import ALLOWED_UPDATES, CHANNEL_UPDATES, BotIdentity, parse
from channels.telegram.settings import TelegramSettings

POLL_MARGIN = 10.0
"""Seconds beyond a poll's own time after which its connection counts as dead."""

_WEBHOOK_CONNECTIONS = 40
_SHORT = 20.0
"""Seconds to wait for an answer about the bot itself."""


@dataclass(frozen=True, slots=True)
class WebhookInfo:
    """The webhook as Telegram sees it. Times in epoch seconds.

    `last_error` stays after later successes: its age says whether it still matters. `missing`
    are the kinds of updates that we want and it does not deliver.
    """

    url: str
    pending: int
    last_error: str = ""
    last_error_at: float | None = None
    missing: tuple[str, ...] = ()


class TelegramAccount:
    """One bot account. Every method raises TelegramUnavailable, TelegramTokenInvalid,
    TelegramConflict or TelegramRefused (of which TelegramMethodUnknown is one)."""

    def __init__(self, settings: TelegramSettings) -> None:
        self.settings = settings
        self.account = settings.telegram_bot_id
        self._api: BotApi = bot_api(settings)
        self._me = BotIdentity(int(self.account), "")

    @property
    def allowed_updates(self) -> tuple[str, ...]:
        """The kinds of updates that this bot wants."""
        return ALLOWED_UPDATES + (CHANNEL_UPDATES if self.settings.telegram_channel_posts else ())

    async def _ask(
        self, method: str, params: Mapping[str, object], read_timeout: float = _SHORT
    ) -> object:
        try:
            return await self._api.call(method, params, read_timeout=read_timeout)
        except TelegramError as error:
            raise account_error(error, method) from error

    async def _ask_for_object(self, method: str, params: Mapping[str, object]) -> Raw:
        result = await self._ask(method, params)
        if not isinstance(result, dict):
            raise TelegramUnavailable(f"{method} gave no object")
        return result

    async def me(self) -> BotIdentity:
        """Ask for the identity that goes with the token."""
        user = await self._ask_for_object("getMe", {})
        number = integer(user, "id")
        if number is None:
            raise TelegramUnavailable("getMe gave no id")
        return BotIdentity(number, string(user, "username"))

    @property
    def public_name(self) -> str:
        """Our user name, by which mentions are recognised; empty if it is not known."""
        return self._me.username

    def remember(self, public_name: str) -> None:
        """Use the name that an earlier process learned, in case Telegram can't be reached now."""
        self._me = BotIdentity(self._me.id, public_name)

    async def learn(self) -> str:
        """Ask for our user name, and use it from now on."""
        self._me = await self.me()
        return self._me.username

    def parse(self, update: Mapping[str, object]) -> tuple[Event, ...]:
        """The events of an update. Raises PayloadError."""
        return parse(update, self._me, channel_posts=self.settings.telegram_channel_posts)

    async def sees_all_groups(self) -> bool:
        """Ask whether the bot reads every message of its groups (privacy mode is off)."""
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

    async def set_webhook(self, url: str, secret: str, *, drop_pending: bool = False) -> None:
        """Have updates delivered to `url`. `drop_pending` throws away what waits."""
        params: dict[str, object] = {
            "url": url,
            "secret_token": secret,
            "allowed_updates": list(self.allowed_updates),
            "max_connections": _WEBHOOK_CONNECTIONS,
        }
        if drop_pending:
            params["drop_pending_updates"] = True
        await self._ask("setWebhook", params)

    async def webhook_info(self) -> WebhookInfo:
        """Ask for the state of the webhook."""
        info = await self._ask_for_object("getWebhookInfo", {})
        # Without a list every kind that we want is delivered.
        delivered = info.get("allowed_updates") or self.allowed_updates
        missing = set(self.allowed_updates).difference(
            delivered if isinstance(delivered, list | tuple) else ()
        )
        return WebhookInfo(
            url=string(info, "url"),
            pending=integer(info, "pending_update_count") or 0,
            last_error=string(info, "last_error_message"),
            last_error_at=timestamp(info, "last_error_date"),
            missing=tuple(sorted(missing)),
        )

    async def delete_webhook(self) -> None:
        """Remove the webhook. Updates that wait are kept, and can be polled."""
        await self._ask("deleteWebhook", {})

    async def show_menu(self, menus: Mapping[str, Sequence[tuple[str, str]]]) -> None:
        """Set the menu of commands by two-letter language, the empty one for all others."""
        for language, menu in menus.items():
            listed = [{"command": name, "description": words} for name, words in menu]
            params: dict[str, object] = {"commands": listed}
            if language:
                params["language_code"] = language
            await self._ask("setMyCommands", params)
