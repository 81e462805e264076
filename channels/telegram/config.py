"""What one Telegram bot is configured with."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

_TOKEN = re.compile(r"([0-9]{1,20}):[A-Za-z0-9_-]+")


def account_of(token: str) -> str:
    """The bot's id: what stands before the colon. Raises ValueError without the token in it."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        raise ValueError(
            "the Telegram token must look like 123456789:AbC..., as @BotFather gave it"
        )
    return match.group(1)


def _nothing(_language: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class TelegramConfig:
    """One bot. `api_url` is the bare base of the Bot API; timeouts in seconds.

    `read_timeout` is long on purpose: the server itself may wait several seconds for its
    own limits, and giving up before it answers is what makes a send uncertain.
    `max_parts` is how many messages a reply may become before it is sent as a file.
    `channel_posts` says that posts in broadcast channels are answered. `long_reply` is what
    stands over a reply that became a file, by the person's language; it may be empty.
    """

    token: str = field(repr=False)
    api_url: str = "https://api.telegram.org"
    read_timeout: float = 60.0
    connect_timeout: float = 5.0
    max_parts: int = 10
    channel_posts: bool = False
    long_reply: Callable[[str], str] = _nothing

    def __post_init__(self) -> None:
        account_of(self.token)
