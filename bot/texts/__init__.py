"""Every sentence that a person can read."""

from bot.texts.keys import Text
from bot.texts.words import Words

__all__ = ["Text", "Words"]
