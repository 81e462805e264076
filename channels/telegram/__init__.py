"""Telegram through the Bot API, by webhook or by polling."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.message import ChannelName
from bot.domain.plugin import ChannelPlugin, Endpoint, Host
from channels.telegram.settings import TelegramSettings

NAME = ChannelName("telegram")


def _connect(settings: TelegramSettings, host: Host) -> Sequence[Endpoint]:
    from channels.telegram.endpoint import connect  # noqa: PLC0415 - its package takes a second

    return connect(settings, host)


CHANNEL = ChannelPlugin(
    name=NAME,
    settings=TelegramSettings,
    configured=lambda settings: bool(settings.telegram_bot_token),
    connect=_connect,
    turned_on_by="TELEGRAM_BOT_TOKEN",
)
