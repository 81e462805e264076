"""The words of a template that may leave in a closed window. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from bot.domain.message import clean
from bot.domain.ports import OutsideWindow
from channels.markdown import render
from channels.text import shorten, utf16_len

REPLY = "{reply}"
"""The place of the reply's words in a value of a template."""

_LIMIT = 900
"""A template's whole text may have 1,024 characters; its fixed words need some of them."""


def line(text: str) -> str:
    """A text as a template takes it: one line, without marks, cut if need be."""
    return shorten(" ".join(render(clean(text)).written_out().split()), _LIMIT, utf16_len)


def use(name: str, values: Iterable[str]) -> OutsideWindow:
    """The use of a template of this name, empty for none, to somebody whose 24 hours are over."""
    if not name:
        return OutsideWindow.NOTHING
    carries = any(REPLY in value for value in values)
    return OutsideWindow.ANSWER if carries else OutsideWindow.INVITATION
