"""An agent's words on their way out: rendered, cut, with buttons and files, on every platform."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random

from hypothesis import strategies as st

from bot.domain.reply import Button, FileOut, PartBody, Reply
from channels.telegram.compose import Wire, compose
from channels.text import cleaned, utf16_len
from channels.web.channel import WebChannel
from channels.whatsapp import compose as twilio
from channels.whatsapp_cloud import compose as meta
from tests.channels.telegram import kit as telegram_kit
from tests.channels.whatsapp import kit as whatsapp_kit
from tests.channels.whatsapp_cloud import kit as whatsapp_cloud_kit
from tests.fuzz import corpus
from tests.fuzz.engine import Target
from tests.fuzz.mutations import damaged_bytes, strange_text
from tests.fuzz.targets.parsers import storable

_MARKS = (
    "*", "_", "`", "```\n", "~~", "[a](", ")", "> ", "- ", "1. ", "| ", "\n", "\n\n", "# ", "\\",
    "<b>", "&amp;", "![x](y)", "\t", "---\n", "|-|\n", "https://e.test/_a_ ", "x", "word ", "😀",
)  # fmt: skip
_MOST_SECONDS = 10.0
"""CPU seconds: a megabyte of addresses takes two."""
_KINDS = ("photo", "document", "voice", "audio", "video")


def _markdown(chance: Random) -> str:
    roll = chance.random()
    if roll < 0.4:
        whole = chance.choice(corpus.answers()).encode()
        others = [answer.encode() for answer in corpus.answers()]
        return damaged_bytes(chance, whole, others).decode("utf-8", "replace")
    if roll < 0.999:
        return "".join(chance.choice(_MARKS) for _ in range(chance.choice((5, 50, 500))))
    return chance.choice(_MARKS) * (chance.choice((5_000, 60_000)))


def _reply(chance: Random) -> Reply:
    if chance.random() < 0.7:
        return Reply(_markdown(chance))
    buttons = tuple(
        Button(
            strange_text(chance) or "x",
            strange_text(chance),
            chance.choice(("", "https://e.test/")),
        )
        for _ in range(chance.choice((0, 1, 3, 11, 40)))
    )
    files = []
    for _ in range(chance.choice((0, 1, 3))):
        by_link = chance.random() < 0.5
        files.append(
            FileOut(
                chance.choice(_KINDS),
                f"https://e.test/{strange_text(chance)}" if by_link else "",
                "" if by_link else strange_text(chance) or "x",
                strange_text(chance),
                _markdown(chance),
            )
        )
    return Reply(_markdown(chance), buttons, tuple(files))


def _fits(parts: Sequence[PartBody], limit: int, of: Callable[[PartBody], str]) -> str:
    """Every part is storable and short enough for its platform."""
    for part in parts:
        assert storable((part.text, part.wire))
        assert utf16_len(of(part)) <= limit, utf16_len(of(part))
    return f"{min(len(parts), 5)} parts"


def _on_telegram(reply: Reply) -> str:
    parts = compose(cleaned(reply), telegram_kit.private(), 10)
    for part in parts:
        params = Wire.decode(part.wire).params
        text = str(params.get("text", params.get("caption", "")))
        for entity in params.get("entities", []):  # type: ignore[attr-defined]  # JSON of ours
            assert entity["length"] > 0
            assert 0 <= entity["offset"] <= utf16_len(text) - entity["length"], entity
    return _fits(parts, 4096, lambda part: str(Wire.decode(part.wire).params.get("text", "")))


_TWILIO = whatsapp_kit.settings_with()


def _on_twilio(reply: Reply) -> str:
    return _fits(
        twilio.compose(cleaned(reply), _TWILIO),
        1600,
        lambda part: twilio.Wire.loads(part.wire).body,
    )


def _on_meta(reply: Reply) -> str:
    def text(part: PartBody) -> str:
        wire = meta.Wire.loads(part.wire)
        return str(wire.content.get("body", "")) if wire.type == "text" else ""

    return _fits(meta.compose(cleaned(reply)), 4096, text)


_WEB = WebChannel()


def _on_a_page(reply: Reply) -> str:
    parts = _WEB.compose(reply, whatsapp_cloud_kit.to())
    return _fits(parts, 100_000, lambda part: str(json.loads(part.wire)["text"]))


def targets() -> Sequence[Target]:
    """All that leaves."""
    text = st.text(st.characters(), max_size=300).map(Reply)
    return [
        Target("rendering: telegram", 25, _on_telegram, _reply, most_seconds=_MOST_SECONDS),
        Target("rendering: telegram, any text", 10, _on_telegram, like=text),
        Target("rendering: twilio", 20, _on_twilio, _reply, most_seconds=_MOST_SECONDS),
        Target("rendering: meta", 20, _on_meta, _reply, most_seconds=_MOST_SECONDS),
        Target("rendering: pages", 5, _on_a_page, _reply, most_seconds=_MOST_SECONDS),
    ]
