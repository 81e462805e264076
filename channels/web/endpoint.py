"""The web as an endpoint: its channel, and the pages that clients come to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bot.domain.clients.desk import Pages
from bot.domain.plugin import Endpoint, Host
from channels.web.access.door import Door
from channels.web.app import Site
from channels.web.channel import WebChannel
from channels.web.examine import examine
from channels.web.settings import WebSettings
from channels.web.widget import Widget
from channels.web.wire import PATH, WIRE


def connect(settings: WebSettings, host: Host) -> Sequence[Endpoint]:
    """The web, as these settings describe it. Raises ConfigurationError."""
    channel = WebChannel()
    site = Site(channel, Door(settings, host.clock), Widget(host.page_texts))
    folder = "" if settings.web_files is None else str(settings.web_files)
    pages = Pages(PATH, WIRE, channel.bind, site.app, folder)
    return [Endpoint(channel, pages=pages, examine=partial(examine, settings))]
