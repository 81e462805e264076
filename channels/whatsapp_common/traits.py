"""The abilities of WhatsApp, whoever carries its messages."""

from __future__ import annotations

from bot.domain.commands import CommandForm
from bot.domain.ports import Pace, Traits

WINDOW_MARGIN = 60.0
"""Seconds before the 24 hours end in which nothing is begun any more."""

TRAITS = Traits(
    free_text_window=86_400.0 - WINDOW_MARGIN,
    ordered=False,
    commands=CommandForm.WORDS,
    pace=Pace(overall=80.0),
    file_limits=(("photo", 5_000_000), ("audio", 16_000_000), ("video", 16_000_000)),
)
