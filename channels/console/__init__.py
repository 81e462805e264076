"""The terminal as a channel: the whole pipeline without any platform."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.message import ChannelName
from bot.domain.plugin import ChannelPlugin, Endpoint, Host

NAME = ChannelName("console")


def _connect(_settings: None, host: Host) -> Sequence[Endpoint]:
    from channels.console.channel import ConsoleChannel  # noqa: PLC0415 - only where it is lent

    return [Endpoint(ConsoleChannel(host.terminal))]


CHANNEL = ChannelPlugin[None](
    name=NAME, settings=None, configured=lambda _settings: False, connect=_connect
)
"""No variable configures it: a process has it that is lent a terminal, and then nothing else."""
