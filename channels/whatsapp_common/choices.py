"""Choices in words: numbered under a text, and named by a person's next one. Pure.

A stored part that offers some has them in its JSON under `options`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from bot.domain.reply import Button, PartBody


def options_among(buttons: Sequence[Button]) -> tuple[Button, ...]:
    """The buttons that are chosen, each with the data that we want back. A link is not chosen
    but opened."""
    return tuple(Button(b.label, b.data or b.label) for b in buttons if not b.url)


def listed(buttons: Sequence[Button]) -> str:
    """The buttons as lines: choices by their numbers, then links, which have none."""
    numbered = [f"{n}. {option.label}" for n, option in enumerate(options_among(buttons), 1)]
    return "\n".join([*numbered, *(f"{b.label}: {b.url}" for b in buttons if b.url)])


def offered(parts: Sequence[PartBody]) -> str:
    """The choices of a reply's parts, in the form of their part; empty for none."""
    return next((part.wire for part in reversed(parts) if _options_of(part.wire)), "")


def choice_of(offered: str, text: str) -> Button | None:
    """The offered choice that these words of a person name, by number or by label."""
    said = text.strip().casefold().rstrip(".)").lstrip("(")
    for number, option in enumerate(_options_of(offered), 1):
        if said in (str(number), option.label.strip().casefold()):
            return option
    return None


def _options_of(stored: str) -> Sequence[Button]:
    try:
        return [Button(**option) for option in json.loads(stored).get("options", ())]
    except (ValueError, TypeError, AttributeError):
        return ()
