"""The terminal as a channel: the whole pipeline without any platform."""

from channels.console.channel import ConsoleChannel
from channels.console.parse import parse

__all__ = ["ConsoleChannel", "parse"]
