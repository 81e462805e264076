"""Choices as inline keyboards, and what a press means.

Telegram carries at most 64 bytes of data a button. Longer data stays with us, in the stored
part, and a key made of its hash travels instead; `full_data` finds it again. The label is
the press's text in any case.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from bot.domain.reply import Button
from channels.telegram.wire import Wire
from channels.text import is_blank, shorten

_DATA_BYTES = 64
_LABEL_LIMIT = 128
_BUTTONS_LIMIT = 100
_KEY = "sha256:"


def _key(data: str) -> str:
    return _KEY + hashlib.sha256(data.encode()).hexdigest()[:40]


def keyboard(buttons: Sequence[Button]) -> tuple[dict[str, object], dict[str, str]]:
    """The inline keyboard, one button a row, and the long data by its keys."""
    rows: list[list[dict[str, str]]] = []
    presses: dict[str, str] = {}
    for button in buttons[:_BUTTONS_LIMIT]:
        data = button.data or button.label
        label = button.label if not is_blank(button.label) else (data or button.url)
        shown = {"text": shorten(label, _LABEL_LIMIT)}
        if button.url:
            shown["url"] = button.url
        elif len(data.encode()) <= _DATA_BYTES:
            shown["callback_data"] = data
        else:
            shown["callback_data"] = _key(data)
            presses[_key(data)] = data
        rows.append([shown])
    return {"inline_keyboard": rows}, presses


def is_key(data: str) -> bool:
    """Whether a press carries a key instead of the button's own data."""
    return data.startswith(_KEY) and len(data) == len(_KEY) + 40


def _presses(wire: str) -> Mapping[str, str]:
    try:
        return Wire.decode(wire).presses
    except ValueError:
        return {}


def full_data(data: str, wires: Iterable[str]) -> str:
    """The button's own data, looked up in the stored parts of its chat; else `data`."""
    if is_key(data):
        for wire in wires:
            found = _presses(wire).get(data)
            if found is not None:
                return found
    return data
