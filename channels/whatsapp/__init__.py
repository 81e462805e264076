"""WhatsApp through Twilio, by webhook."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.message import ChannelName
from bot.domain.plugin import ChannelPlugin, Endpoint, Host
from channels.whatsapp.settings import TwilioSettings

NAME = ChannelName("whatsapp")


def _connect(settings: TwilioSettings, host: Host) -> Sequence[Endpoint]:
    from channels.whatsapp.endpoint import connect  # noqa: PLC0415 - its package takes a second

    return connect(settings, host)


CHANNEL = ChannelPlugin(
    name=NAME,
    settings=TwilioSettings,
    configured=lambda settings: bool(settings.twilio_account_sid),
    connect=_connect,
    turned_on_by="TWILIO_ACCOUNT_SID and its companions",
)
