"""What a message contains: its kind, the words the agent reads, the files to fetch.

A thing without words gets a description in brackets, so that nothing reaches the agent as
an empty text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.domain.message import Attachment, InboundKind, clean
from channels.telegram.fields import Raw, decimal, joined, obj, objs, whole, words
from channels.telegram.people import name_of
from channels.telegram.rich import rich_text
from channels.telegram.rules import BOOKKEEPING
from channels.text import is_blank

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
            return Content(kind, _or(words(message, "caption"), described))
    if "text" in message:
        return Content(Kind.TEXT, _or(words(message, "text"), "[empty message]"))
    if "rich_message" in message:
        return Content(Kind.RICH, _or(rich_text(message["rich_message"]), "[rich message]"))
    unknown = ", ".join(sorted(clean(key) for key in message if key not in BOOKKEEPING))
    described = f"[{joined('message', unknown[:80], by=': ')}]"
    return Content(Kind.OTHER, _or(words(message, "caption"), described))


def _or(text: str, otherwise: str) -> str:
    return otherwise if is_blank(text) else text


def _file(message: Raw, key: str, kind: InboundKind, name: str) -> Content:
    raw = _largest(objs(message, key)) if key == "photo" else obj(message, key)
    seconds = whole(raw, "duration")
    length = f"{seconds} s" if seconds is not None else ""
    title = joined(words(raw, "performer"), words(raw, "title"), by=" - ")
    label = title or words(raw, "file_name") or words(raw, "emoji")
    described = f"[{joined(joined(name, label), length, by=', ')}]"
    reference = words(raw, "file_id")
    file = Attachment(
        kind=key,
        ref=reference,
        mime=words(raw, "mime_type"),
        name=words(raw, "file_name"),
        size=whole(raw, "file_size"),
        seconds=seconds,
    )
    text = _or(words(message, "caption"), described)
    return Content(kind, text, (file,) if reference else ())


def _largest(sizes: list[Raw]) -> Raw:
    return max(sizes, key=_area, default={})


def _area(size: Raw) -> int:
    return (whole(size, "width") or 0) * (whole(size, "height") or 0)


def _place(location: Raw) -> str:
    return joined(decimal(location, "latitude"), decimal(location, "longitude"), by=", ")


def _location(raw: Raw) -> str:
    live = "live location" if whole(raw, "live_period") else "location"
    return f"[{joined(live, _place(raw), by=': ')}]"


def _venue(raw: Raw) -> str:
    place = _place(obj(raw, "location"))
    return f"[venue: {joined(words(raw, 'title'), words(raw, 'address'), place, by=', ')}]"


def _contact(raw: Raw) -> str:
    return f"[contact: {joined(name_of(raw), words(raw, 'phone_number'), by=', ')}]"


def _listed(name: str, title: str, items: list[Raw]) -> str:
    lines = "".join(f"\n- {words(item, 'text')}" for item in items)
    return f"[{joined(name, title, by=': ')}]{lines}"


def _poll(raw: Raw) -> str:
    return _listed("poll", words(raw, "question"), objs(raw, "options"))


def _checklist(raw: Raw) -> str:
    return _listed("checklist", words(raw, "title"), objs(raw, "tasks"))


def _dice(raw: Raw) -> str:
    return f"[{joined(joined('dice', words(raw, 'emoji')), decimal(raw, 'value'), by=': ')}]"


def _titled(name: str) -> Callable[[Raw], str]:
    return lambda raw: f"[{joined(name, words(raw, 'title'), by=': ')}]"


def _users(raw: Raw) -> str:
    people = [joined(name_of(u), decimal(u, "user_id")) for u in objs(raw, "users")]
    return f"[shared: {', '.join(people)}]"


def _chat(raw: Raw) -> str:
    return f"[shared: {joined(name_of(raw), decimal(raw, 'chat_id'))}]"


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
    ("poll", Kind.POLL, _poll),
    ("dice", Kind.DICE, _dice),
    ("checklist", Kind.OTHER, _checklist),
    ("game", Kind.OTHER, _titled("game")),
    ("invoice", Kind.OTHER, _titled("invoice")),
    ("story", Kind.OTHER, lambda _: ""),
    ("paid_media", Kind.OTHER, lambda _: ""),
    ("giveaway", Kind.OTHER, lambda _: ""),
    ("giveaway_winners", Kind.OTHER, lambda _: ""),
    ("web_app_data", Kind.SERVICE, lambda raw: words(raw, "data")),
    ("users_shared", Kind.SERVICE, _users),
    ("chat_shared", Kind.SERVICE, _chat),
)
"""A venue also carries a location."""
