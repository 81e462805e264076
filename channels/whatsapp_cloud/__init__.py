"""WhatsApp through Meta's own Cloud API, by webhook."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.message import ChannelName
from bot.domain.plugin import ChannelPlugin, Endpoint, Host
from channels.whatsapp_cloud.settings import MetaSettings

NAME = ChannelName("whatsapp-cloud")


def _connect(settings: MetaSettings, host: Host) -> Sequence[Endpoint]:
    from channels.whatsapp_cloud.endpoint import connect  # noqa: PLC0415 - only where it is on

    return connect(settings, host)


CHANNEL = ChannelPlugin(
    name=NAME,
    settings=MetaSettings,
    configured=lambda settings: bool(settings.meta_phone_number_id),
    connect=_connect,
    turned_on_by="META_PHONE_NUMBER_ID and its companions",
)
