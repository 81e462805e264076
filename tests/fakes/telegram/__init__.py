"""A Telegram Bot API that misbehaves on demand."""

from tests.fakes.telegram.server import FakeTelegram

__all__ = ["FakeTelegram"]
