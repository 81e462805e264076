"""A bot of ours as a process uses it: its channel, the route of its webhook, the webhook at
Telegram, what `doctor` asks."""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.errors import ConfigurationError, PollConflict, PollRefused, PollUnavailable
from bot.domain.findings import Finding, fine, problem
from bot.domain.message import Event, PayloadError, clean
from bot.domain.plugin import (
    Endpoint,
    Host,
    NotAuthentic,
    NotReadable,
    Payload,
    Posted,
    Route,
    WebhookState,
)
from bot.domain.ports import Clock
from channels.telegram.channel import TelegramChannel
from channels.telegram.errors import TelegramMethodUnknown
from channels.telegram.settings import TelegramSettings

PATH = "/telegram/webhook"
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 a header's name
_REFUSALS = (PollConflict, PollRefused, PollUnavailable)


def connect(settings: TelegramSettings, host: Host) -> Sequence[Endpoint]:
    """The bot of these settings, not yet open."""
    channel = TelegramChannel(settings, host)
    bot = _Bot(channel, settings, host.clock)
    endpoint = Endpoint(
        channel,
        routes=[Route(PATH, bot.read)],
        updates=channel if settings.telegram_polls else None,
        profile=channel,
        webhook=bot,
        examine=bot.examine,
    )
    return [endpoint]


def secret_matches(header: str | None, secret: str) -> bool:
    """Compare the secret header with ours in constant time. An empty secret never matches:
    then the route is there and refuses everybody."""
    if not header or not secret:
        return False
    theirs = header.encode("utf-8", "surrogatepass")
    return hmac.compare_digest(theirs, secret.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class _Bot:
    """The sides of one bot that need its settings."""

    channel: TelegramChannel
    settings: TelegramSettings
    clock: Clock

    def read(self, posted: Posted) -> Sequence[Payload]:
        """An update that Telegram posted. A body that is no JSON is not kept: Telegram sends
        nothing else, so something between it and us broke it."""
        secret = self.settings.telegram_webhook_secret
        if not secret_matches(posted.headers.get(SECRET_HEADER), secret):
            raise NotAuthentic
        try:
            update = json.loads(posted.body)
        except (ValueError, RecursionError) as error:
            raise NotReadable("the body is not JSON") from error
        events: tuple[Event, ...] = ()
        reason = ""
        try:
            events = self.channel.parse(update)
        except PayloadError as error:
            reason = str(error)
        return [Payload(clean(posted.body.decode("utf-8", "replace")), events, reason)]

    @property
    def _url(self) -> str:
        """The address to which Telegram should deliver; empty while updates are polled."""
        return "" if self.settings.telegram_polls else self.settings.public_url + PATH

    async def state(self) -> WebhookState:
        try:
            info = await self.channel.webhook_info()
        except TelegramMethodUnknown as error:
            return WebhookState("telegram", wanted=self._url, by_hand=str(error))
        except _REFUSALS as error:
            refused = isinstance(error, PollRefused)
            return WebhookState("telegram", "", self._url, trouble=str(error), refused=refused)
        age = None if info.last_error_at is None else self.clock.wall() - info.last_error_at
        missing = info.missing if info.url else ()
        found = (info.url, self._url, info.pending, info.last_error, age)
        return WebhookState("telegram", *found, missing=missing)

    async def set(self, *, drop_pending: bool) -> Sequence[str]:
        secret = self.settings.telegram_webhook_secret
        if not secret:
            raise ConfigurationError("TELEGRAM_WEBHOOK_SECRET is empty: set a long random word")
        if not self._url:
            raise ConfigurationError("TELEGRAM_MODE is polling: a webhook would stop it")
        await self.channel.set_webhook(self._url, secret, drop_pending=drop_pending)
        return [f"telegram delivers to {self._url}"]

    async def delete(self) -> Sequence[str]:
        await self.channel.delete_webhook()
        return ["telegram delivers nothing any more; what waits there stays for polling"]

    async def examine(self) -> Sequence[Finding]:
        try:
            me = await self.channel.me()
            sees_all = await self.channel.sees_all_groups()
        except _REFUSALS as error:
            return [problem("telegram", str(error), "take the token anew from @BotFather")]
        found = [fine("telegram", f"the bot is @{me.username} ({me.id})")]
        if not sees_all:
            said = "on: in groups the bot sees commands, mentions and replies only"
            found.append(fine("telegram privacy mode", said))
        if not self.settings.telegram_polls and not self.settings.telegram_webhook_secret:
            fix = "set TELEGRAM_WEBHOOK_SECRET to a long random word"
            found.append(problem("telegram secret", "none is set", fix))
        return found
