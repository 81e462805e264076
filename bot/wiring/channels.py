"""The channels that the settings configure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.domain.ports import Channel, Clock
from bot.settings import Settings
from bot.texts import Words
from channels.console import ConsoleChannel

if TYPE_CHECKING:
    from channels.telegram.channel import TelegramChannel
    from channels.whatsapp.channel import WhatsAppChannel


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

    def carriers(self) -> list[WhatsAppChannel]:
        """Those whose platform reports later on what it took."""
        return [] if self.whatsapp is None else [self.whatsapp]


def configure(
    settings: Settings,
    clock: Clock,
    words: Words,
    terminal: Callable[[str], None] | None = None,
) -> Configured:
    """The channels, not yet open: the platforms, or with `terminal` only the terminal.

    A platform's packages are loaded only where it is configured: they take longer than
    everything else of a start. Raises ConfigurationError.
    """
    if terminal is not None:
        return Configured(None, None, ConsoleChannel(terminal))
    return Configured(
        telegram=_telegram(settings, clock, words),
        whatsapp=_whatsapp(settings, clock),
        console=None,
    )


def _telegram(settings: Settings, clock: Clock, words: Words) -> TelegramChannel | None:
    if not settings.telegram_bot_token:
        return None
    from bot.wiring.telegram import telegram_channel  # noqa: PLC0415 - see configure

    return telegram_channel(settings, clock, words)


def _whatsapp(settings: Settings, clock: Clock) -> WhatsAppChannel | None:
    if not settings.twilio_account_sid:
        return None
    from bot.wiring.whatsapp import whatsapp_channel  # noqa: PLC0415 - see configure

    return whatsapp_channel(settings, clock)
