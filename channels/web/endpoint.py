"""The web as an endpoint: its channel, and the pages that clients come to."""

from __future__ import annotations

from bot.domain.clients import Pages
from bot.domain.plugin import Endpoint, Host
from channels.web.app import Site
from channels.web.channel import WebChannel
from channels.web.settings import WebSettings
from channels.web.tokens import Tokens
from channels.web.wire import PATH, WIRE


def connect(settings: WebSettings, host: Host) -> Endpoint:
    """The web, as these settings describe it. Raises ConfigurationError."""
    channel = WebChannel()
    site = Site(channel, Tokens(settings.web_secret, host.clock), host.clock)
    return Endpoint(channel, pages=Pages(PATH, WIRE, channel.bind, site.app))
