"""A bot's part of the environment."""

from __future__ import annotations

import re
from enum import StrEnum

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]+")
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")


class TelegramMode(StrEnum):
    """The way in which updates come in."""

    WEBHOOK = "webhook"
    POLLING = "polling"


class TelegramSettings(BaseSettings, defer_build=True):
    """Telegram's variables. Times in seconds.

    `telegram_read_timeout` is long on purpose: the server itself may wait several seconds for
    its own limits, and giving up before it answers is what makes a send uncertain. `max_parts`
    is how many messages a reply may become before it is sent as a file.
    """

    public_url: str = ""
    telegram_bot_token: str = Field("", repr=False)
    telegram_mode: TelegramMode | None = None
    telegram_webhook_secret: str = Field("", repr=False)
    telegram_api_url: str = "https://api.telegram.org"
    telegram_read_timeout: float = Field(60.0, gt=0)
    telegram_channel_posts: bool = False
    max_parts: int = Field(10, ge=1, le=100)

    @property
    def telegram_polls(self) -> bool:
        """True when updates are polled, as they are where there is no PUBLIC_URL."""
        if self.telegram_mode is not None:
            return self.telegram_mode is TelegramMode.POLLING
        return not self.public_url

    @property
    def telegram_bot_id(self) -> str:
        """The part before the token's colon."""
        return self.telegram_bot_token.partition(":")[0]

    @field_validator("telegram_bot_token")
    @classmethod
    def _telegram_token(cls, value: str) -> str:
        if value and not _TOKEN.fullmatch(value):
            raise ValueError(
                "the Telegram token must look like 123456789:AbC..., as @BotFather gave it"
            )
        return value

    @field_validator("telegram_webhook_secret")
    @classmethod
    def _telegram_secret(cls, value: str) -> str:
        if value and not _SECRET.fullmatch(value):
            raise ValueError("must be 1 to 256 of A-Z a-z 0-9 _ - (Telegram takes no others)")
        return value

    @model_validator(mode="after")
    def _telegram_fits_together(self) -> TelegramSettings:
        by_webhook = self.telegram_bot_token and not self.telegram_polls
        if by_webhook and not self.telegram_webhook_secret:
            raise ValueError(
                "TELEGRAM_WEBHOOK_SECRET is empty: without it anybody could send updates; "
                "set it to a long random word, or set TELEGRAM_MODE=polling"
            )
        return self
