"""Answers as models write them, and how they were seen to arrive on both platforms.

`answers.txt` is what was written; `telegram.txt` and `whatsapp.txt` are what arrives, read
through by a person before they were kept. `python -m tests.channels.corpus` writes the two
anew: read their difference before you commit it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bot.domain.reply import Reply
from channels.telegram.compose import compose
from channels.whatsapp.compose import pieces
from tests.channels.telegram.kit import params, private

HERE = Path(__file__).parent
PART = "\n--- part\n"


def read(name: str) -> dict[str, str]:
    """The documents of a file, by their names."""
    found = re.split(r"^=== (.+)\n", (HERE / f"{name}.txt").read_text(), flags=re.MULTILINE)[1:]
    return {key: text.removesuffix("\n") for key, text in zip(found[::2], found[1::2], strict=True)}


def write(name: str, documents: Mapping[str, str]) -> None:
    text = "".join(f"=== {key}\n{document}\n" for key, document in documents.items())
    (HERE / f"{name}.txt").write_text(text)


def on_telegram(text: str) -> str:
    """The messages with their entities drawn in."""
    return PART.join(drawn(params(part)) for part in compose(Reply(text), private(), 10))


def on_whatsapp(text: str) -> str:
    return PART.join(pieces(text))


PLATFORMS: Mapping[str, Callable[[str], str]] = {"telegram": on_telegram, "whatsapp": on_whatsapp}


def drawn(call: Mapping[str, Any]) -> str:
    """A message of Telegram with its entities as tags around their words."""
    tags: list[tuple[int, int, int, str]] = []
    for number, entity in enumerate(call.get("entities", [])):
        start, end = entity["offset"], entity["offset"] + entity["length"]
        value = entity.get("url") or entity.get("language") or ""
        tags.append((start, 1, number, f"⟨{entity['type']} {value}".rstrip() + "⟩"))
        tags.append((end, 0, -number, "⟨/⟩"))
    units: bytes = call["text"].encode("utf-16-le")
    at, written = 0, ""
    for place, _, _, tag in sorted(tags):
        written += units[2 * at : 2 * place].decode("utf-16-le") + tag
        at = place
    return written + units[2 * at :].decode("utf-16-le")
