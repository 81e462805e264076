"""The web: a page or an app whose turns outlive the tab, through an API of our own."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.message import ChannelName
from bot.domain.plugin import ChannelPlugin, Endpoint, Host
from channels.web.settings import WebSettings

NAME = ChannelName("web")


def _connect(settings: WebSettings, host: Host) -> Sequence[Endpoint]:
    from channels.web.endpoint import connect  # noqa: PLC0415 - only where it is turned on

    return connect(settings, host)


CHANNEL = ChannelPlugin(
    name=NAME,
    settings=WebSettings,
    configured=lambda settings: bool(settings.web),
    connect=_connect,
    turned_on_by="WEB",
    beside_terminal=lambda settings: settings.web is None,
)
