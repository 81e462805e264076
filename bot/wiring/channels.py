"""The channels that the settings configure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.domain.errors import ConfigurationError
from bot.domain.ports import Channel, Clock
from bot.settings import Settings
from bot.wiring.hooks import WHATSAPP_STATUS_PATH
from channels.console import ConsoleChannel
from channels.telegram.channel import TelegramChannel
from channels.telegram.config import TelegramConfig
from channels.whatsapp.channel import WhatsAppChannel
from channels.whatsapp.config import TwilioConfig, sender_address


@dataclass(frozen=True, slots=True)
class Configured:
    """One channel of each kind at most; None where it is off."""

    telegram: TelegramChannel | None
    whatsapp: WhatsAppChannel | None
    console: ConsoleChannel | None

    def all(self) -> list[Channel]:
        """Those that are on."""
        found: list[Channel | None] = [self.telegram, self.whatsapp, self.console]
        return [channel for channel in found if channel is not None]


def configure(
    settings: Settings, clock: Clock, terminal: Callable[[str], None] | None = None
) -> Configured:
    """The channels, not yet open: the platforms, or with `terminal` only the terminal.

    Raises ConfigurationError.
    """
    if terminal is not None:
        return Configured(None, None, ConsoleChannel(terminal))
    return Configured(
        telegram=_telegram(settings, clock),
        whatsapp=_whatsapp(settings, clock),
        console=None,
    )


def _telegram(settings: Settings, clock: Clock) -> TelegramChannel | None:
    if not settings.telegram_bot_token:
        return None
    try:
        config = TelegramConfig(
            token=settings.telegram_bot_token,
            api_url=settings.telegram_api_url,
            read_timeout=settings.telegram_read_timeout,
            max_parts=settings.max_parts,
            channel_posts=settings.telegram_channel_posts,
        )
    except ValueError as error:
        raise ConfigurationError(f"TELEGRAM_BOT_TOKEN: {error}") from error
    return TelegramChannel(config, clock)


def _whatsapp(settings: Settings, clock: Clock) -> WhatsAppChannel | None:
    if not settings.twilio_account_sid:
        return None
    config = TwilioConfig(
        account_sid=settings.twilio_account_sid,
        auth_token=settings.twilio_auth_token,
        sender=sender_address(settings.twilio_whatsapp_from),
        api_url=settings.twilio_api_url,
        status_callback=settings.public_url + WHATSAPP_STATUS_PATH,
        second_auth_token=settings.twilio_second_auth_token,
        shared_key=settings.twilio_shared_key,
        template_sid=settings.twilio_template_sid,
        typing=settings.twilio_typing,
        total_timeout=settings.twilio_timeout,
    )
    return WhatsAppChannel(config, clock)
