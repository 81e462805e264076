"""The contents of a message: its kind, the words the agent reads, the files to fetch.

A thing without words gets a description in brackets, so that nothing reaches the agent as an
empty text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.domain.message import Attachment, InboundKind, clean, one_line
from channels.raw import Raw, integer, joined, obj, objs, shown_number, string, title
from channels.text import is_blank

_COMMAND = re.compile(r"/([A-Za-z0-9_]{1,64})(?:@([A-Za-z0-9_]+))?(?=\s|$)")
_MENTION = re.compile(r"(?<![A-Za-z0-9_])@[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Entity:
    """A marked piece of a message's text. `at` is its offset in UTF-16 code units."""

    type: str
    text: str
    at: int
    rest: str
    user_id: int | None = None


def entities(message: Raw) -> Iterator[Entity]:
    """The marked pieces of the text or caption, found by eye where Telegram sent no list."""
    name = "text" if "text" in message else "caption"
    text = string(message, name)
    key = "entities" if name == "text" else "caption_entities"
    if key not in message:
        command = _COMMAND.match(text)
        if command is not None:
            yield Entity("bot_command", command.group(), 0, text[command.end() :])
        for mention in _MENTION.finditer(text, command.end() if command else 0):
            yield Entity("mention", mention.group(), mention.start(), text[mention.end() :])
        return
    units = text.encode("utf-16-le")
    for raw in objs(message, key):
        start, length = integer(raw, "offset"), integer(raw, "length")
        if start is None or length is None or start < 0 or length <= 0:
            continue
        end = start + length
        piece = units[2 * start : 2 * end].decode("utf-16-le", "replace")
        rest = units[2 * end :].decode("utf-16-le", "replace")
        yield Entity(string(raw, "type"), piece, start, rest, integer(obj(raw, "user"), "id"))


def name_of(who: Raw) -> str:
    """The display name of a user or chat."""
    full = joined(string(who, "first_name"), string(who, "last_name"))
    return full or string(who, "title") or string(who, "username")


Kind = InboundKind


@dataclass(frozen=True, slots=True)
class Content:
    """`text` is never blank."""

    kind: InboundKind
    text: str
    attachments: tuple[Attachment, ...] = ()


def content_of(message: Raw) -> Content:
    """The content of any message that a person can send."""
    for key, kind, name in _FILES:
        if key in message:
            return _file(message, key, kind, name)
    for key, kind, describe in _THINGS:
        if key in message:
            described = _or(describe(obj(message, key)), f"[{key.replace('_', ' ')}]")
            return Content(kind, _or(string(message, "caption"), described))
    if "text" in message:
        return Content(Kind.TEXT, _or(string(message, "text"), "[empty message]"))
    if "rich_message" in message:
        return Content(Kind.RICH, _or(rich_text(message["rich_message"]), "[rich message]"))
    unknown = ", ".join(sorted(clean(key) for key in message if key not in BOOKKEEPING))
    described = f"[{joined('message', unknown[:80], by=': ')}]"
    return Content(Kind.OTHER, _or(string(message, "caption"), described))


def _or(text: str, otherwise: str) -> str:
    return otherwise if is_blank(text) else text


def _file(message: Raw, key: str, kind: InboundKind, name: str) -> Content:
    raw = max(objs(message, key), key=_area, default={}) if key == "photo" else obj(message, key)
    seconds = integer(raw, "duration")
    length = f"{seconds} s" if seconds is not None else ""
    named = joined(title(raw, "performer"), title(raw, "title"), by=" - ")
    label = named or title(raw, "file_name") or title(raw, "emoji")
    described = f"[{joined(joined(name, label), length, by=', ')}]"
    reference = string(raw, "file_id")
    file = Attachment(
        kind=key,
        ref=reference,
        mime=string(raw, "mime_type"),
        name=string(raw, "file_name"),
        size=integer(raw, "file_size"),
        seconds=seconds,
    )
    text = _or(string(message, "caption"), described)
    return Content(kind, text, (file,) if reference else ())


def _area(size: Raw) -> int:
    return (integer(size, "width") or 0) * (integer(size, "height") or 0)


def _place(location: Raw) -> str:
    return joined(shown_number(location, "latitude"), shown_number(location, "longitude"), by=", ")


def _location(raw: Raw) -> str:
    live = "live location" if integer(raw, "live_period") else "location"
    return f"[{joined(live, _place(raw), by=': ')}]"


def _venue(raw: Raw) -> str:
    place = _place(obj(raw, "location"))
    return f"[venue: {joined(title(raw, 'title'), title(raw, 'address'), place, by=', ')}]"


def _contact(raw: Raw) -> str:
    return f"[contact: {joined(one_line(name_of(raw)), title(raw, 'phone_number'), by=', ')}]"


def _listed(name: str, about: str, items: str) -> Callable[[Raw], str]:
    def describe(raw: Raw) -> str:
        lines = "".join(f"\n- {title(item, 'text')}" for item in objs(raw, items))
        return f"[{joined(name, title(raw, about), by=': ')}]{lines}"

    return describe


def _dice(raw: Raw) -> str:
    return f"[{joined(joined('dice', title(raw, 'emoji')), shown_number(raw, 'value'), by=': ')}]"


def _titled(name: str) -> Callable[[Raw], str]:
    return lambda raw: f"[{joined(name, title(raw, 'title'), by=': ')}]"


def _users(raw: Raw) -> str:
    people = [joined(one_line(name_of(u)), shown_number(u, "user_id")) for u in objs(raw, "users")]
    return f"[shared: {', '.join(people)}]"


def _chat(raw: Raw) -> str:
    return f"[shared: {joined(one_line(name_of(raw)), shown_number(raw, 'chat_id'))}]"


_FILES = (
    ("animation", Kind.ANIMATION, "animation"),
    ("live_photo", Kind.PHOTO, "live photo"),
    ("video_note", Kind.VIDEO_NOTE, "video note"),
    ("voice", Kind.VOICE, "voice message"),
    ("audio", Kind.AUDIO, "audio"),
    ("video", Kind.VIDEO, "video"),
    ("sticker", Kind.STICKER, "sticker"),
    ("document", Kind.DOCUMENT, "document"),
    ("photo", Kind.PHOTO, "photo"),
)
"""In this order: an animation also carries a document, a live photo also a photo."""

_THINGS: tuple[tuple[str, InboundKind, Callable[[Raw], str]], ...] = (
    ("venue", Kind.VENUE, _venue),
    ("location", Kind.LOCATION, _location),
    ("contact", Kind.CONTACT, _contact),
    ("poll", Kind.POLL, _listed("poll", "question", "options")),
    ("dice", Kind.DICE, _dice),
    ("checklist", Kind.OTHER, _listed("checklist", "title", "tasks")),
    ("game", Kind.OTHER, _titled("game")),
    ("invoice", Kind.OTHER, _titled("invoice")),
    ("story", Kind.OTHER, lambda _: ""),
    ("paid_media", Kind.OTHER, lambda _: ""),
    ("giveaway", Kind.OTHER, lambda _: ""),
    ("giveaway_winners", Kind.OTHER, lambda _: ""),
    ("web_app_data", Kind.SERVICE, lambda raw: string(raw, "data")),
    ("users_shared", Kind.SERVICE, _users),
    ("chat_shared", Kind.SERVICE, _chat),
)
"""A venue also carries a location."""


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
    """A node's visible parts, in order; None ends a line."""
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


BOOKKEEPING = frozenset({
    "author_signature", "business_connection_id", "caption", "caption_entities", "chat", "date",
    "direct_messages_topic", "edit_date", "effect_id", "entities", "external_reply",
    "forward_origin", "from", "guest_bot_caller_chat", "guest_bot_caller_user", "guest_query_id",
    "has_media_spoiler", "has_protected_content", "is_automatic_forward", "is_from_offline",
    "is_paid_post", "is_topic_message", "link_preview_options", "media_group_id", "message_id",
    "message_thread_id", "migrate_from_chat_id", "migrate_to_chat_id", "paid_star_count", "quote",
    "reply_markup", "reply_to_checklist_task_id", "reply_to_message", "reply_to_poll_option_id",
    "reply_to_story", "sender_boost_count", "sender_business_bot", "sender_chat", "sender_tag",
    "show_caption_above_media", "suggested_post_info", "via_bot",
})  # fmt: skip
"""Fields of a message that show nothing by themselves."""
