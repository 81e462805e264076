"""The contents of a person's message: its kind, the words the agent reads, the files to fetch."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.message import LONGEST_TITLE, Attachment, InboundKind, one_line
from channels.text import is_blank

EMPTY = "[an empty message]"

DESCRIPTIONS = {
    InboundKind.PHOTO: "[a photo]",
    InboundKind.VOICE: "[a voice message]",
    InboundKind.AUDIO: "[an audio file]",
    InboundKind.VIDEO: "[a video]",
    InboundKind.DOCUMENT: "[a document]",
    InboundKind.STICKER: "[a sticker]",
    InboundKind.CONTACT: "[a contact card]",
}

SENT_TOGETHER = frozenset({InboundKind.PHOTO, InboundKind.VIDEO, InboundKind.DOCUMENT})
"""People pick several of these at once. Each comes by itself, and nothing says how many."""


@dataclass(frozen=True, slots=True)
class Content:
    """A message's substance. `text` is never blank: what has no words is described."""

    kind: InboundKind
    text: str
    attachments: tuple[Attachment, ...] = ()
    button: str = ""


def with_files(kind: InboundKind, caption: str, files: tuple[Attachment, ...]) -> Content:
    """A message with files, or with the place of one that did not come."""
    return Content(kind, DESCRIPTIONS[kind] if is_blank(caption) else caption, files)


def words(body: str) -> Content:
    """A message of words only."""
    return Content(InboundKind.OTHER, EMPTY) if is_blank(body) else Content(InboundKind.TEXT, body)


def unshown(what: str) -> Content:
    """A message of a kind that does not come through."""
    named = one_line(what, 40)
    return Content(InboundKind.OTHER, f"[a message that can't be shown: {named or 'unknown'}]")


def filled_form(answers: str) -> Content:
    """A form as a person filled it in, in the platform's own notation."""
    return Content(InboundKind.RICH, f"[a filled-in form: {' '.join(answers.splitlines())}]")


def location(latitude: str, longitude: str, *names: str, caption: str = "") -> Content:
    """A place, with what it is called and any words beside it."""
    place = ", ".join(shown for name in names if (shown := one_line(name, LONGEST_TITLE)))
    point = one_line(f"{latitude.strip()}, {longitude.strip()}")
    described = f"[a location: {point}{f' ({place})' if place else ''}]"
    said = caption.strip()
    text = f"{said}\n{described}" if said and said not in place else described
    return Content(InboundKind.LOCATION, text)
