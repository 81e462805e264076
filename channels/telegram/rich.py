"""The words of a rich message (Bot API 10.1), which has no `text` of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.domain.message import clean

_NODES = 100_000
"""More than fits in an update of 64 KiB."""
_WORDS = ("text", "alternative_text", "expression", "caption", "credit")
_MEDIA = ("photo", "video", "audio", "voice_note", "animation", "location")


def rich_text(message: object) -> str:
    """All visible words, a block or a table row a line; media by their kind in brackets."""
    lines: list[list[str]] = [[]]
    pending: list[object] = [message]
    for _ in range(_NODES):
        if not pending:
            break
        node = pending.pop()
        if node is None:
            lines.append([])
        elif isinstance(node, str):
            lines[-1].append(node)
        elif isinstance(node, Mapping):
            pending.extend(reversed(_within(node)))
        elif isinstance(node, Sequence):
            pending.extend(reversed(node))
    return clean("\n".join(text for line in lines if (text := "".join(line).strip())))


def _within(node: Mapping[object, object]) -> list[object]:
    """What a node shows, in order; None ends a line."""
    parts: list[object] = [f"[{key}]" for key in _MEDIA if key in node]
    if "label" in node:
        parts += [node["label"], " "]
    if "summary" in node:
        parts += [node["summary"], None]
    parts += [node[key] for key in _WORDS if key in node]
    if node.get("type") == "url" and node.get("url") != node.get("text"):
        parts.append(f" ({node.get('url')})")
    for key in ("blocks", "items"):
        for block in _list(node.get(key)):
            parts += [block, None]
    for row in _list(node.get("cells")):
        for cell in _list(row):
            parts += [cell, "  "]
        parts.append(None)
    return parts


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()
