"""A reply as the messages that carry it, each stored as JSON in the outbox. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from bot.domain.ports import OutsideWindow
from bot.domain.reply import Button, FileOut, PartBody, Reply
from channels.markdown import Styled
from channels.text import cleaned, is_blank, shorten, utf16_len
from channels.whatsapp_cloud.settings import MetaSettings
from channels.whatsapp_common import templates
from channels.whatsapp_common.choices import listed, options_among
from channels.whatsapp_common.markup import cut, literal, pieces, titled
from channels.whatsapp_common.templates import REPLY
from channels.whatsapp_common.wire import StoredWire

LIMIT = 4096
"""UTF-16 units of a text; so are all of these."""
CAPTION_LIMIT = 1024
CHOICES_BODY_LIMIT = 1024
BUTTON_TITLE_LIMIT = 20
BUTTON_ID_LIMIT = 256
ROW_TITLE_LIMIT = 24
ROW_TEXT_LIMIT = 72
ROW_ID_LIMIT = 200
MOST_BUTTONS = 3
MOST_ROWS = 10

_TEXT = "text"
_TEMPLATE = "template"
_TYPES = {"photo": "image", "video": "video", "voice": "audio", "audio": "audio"}
"""By the kind of a file; whatever else there is goes as a document."""


@dataclass(frozen=True, slots=True)
class Wire(StoredWire):
    """One message: its `type`, and the object that Graph takes under that name. `fallback` are
    the words that are sent instead when its file or its choices are refused. `upload` is text that
    is handed over as a file first."""

    type: str
    content: Mapping[str, object]
    fallback: str = ""
    upload: str = ""


def words(text: str, options: tuple[Button, ...] = ()) -> Wire:
    """A message of words alone. The first address in it is shown with a preview."""
    return Wire(_TEXT, {"body": text, "preview_url": "://" in text}, options=options)


def compose(reply: Reply) -> list[PartBody]:
    """The parts of a reply in order: words, the choices under them, files. Each costs money: words
    go into as few as they fit."""
    if reply.silent:
        return []
    reply = cleaned(reply)
    texts, buttons = pieces(reply.text, LIMIT), reply.buttons
    parts = _with_choices(texts, buttons) if buttons else _bodies(texts)
    return parts + [part for file in reply.files for part in _file(file)]


def _bodies(texts: Sequence[str]) -> list[PartBody]:
    return [_part(words(text), text) for text in texts]


def _part(wire: Wire, text: str) -> PartBody:
    return PartBody(text, wire.dumps())


def _with_choices(texts: list[str], buttons: tuple[Button, ...]) -> list[PartBody]:
    options, lines = options_among(buttons), listed(buttons)
    last = texts[-1] if texts else ""
    joined = f"{last}\n\n{literal(lines)}" if last else literal(lines)
    if utf16_len(joined) <= LIMIT:
        shown = _shown(last, options) if len(options) == len(buttons) else None
        if shown is not None:
            kind, content = shown
            wire = Wire("interactive", {"type": kind, **content}, joined, options=options)
            return [*_bodies(texts[:-1]), _part(wire, joined)]
        return [*_bodies(texts[:-1]), _part(words(joined, options), joined)]
    *before, final = [*texts[-1:], *cut(Styled(lines), LIMIT)]
    return [*_bodies([*texts[:-1], *before]), _part(words(final, options), final)]


def _shown(text: str, options: Sequence[Button]) -> tuple[str, Mapping[str, object]] | None:
    """The choices as buttons or as a list, where WhatsApp takes these words and labels so; None
    where they are better numbered: one too long would have the whole message refused."""
    distinct = len({o.data for o in options}) == len({o.label for o in options}) == len(options)
    if not distinct or not 0 < utf16_len(text) <= CHOICES_BODY_LIMIT:
        return None
    if any(is_blank(o.label) for o in options):
        return None
    body = {"text": text}
    if len(options) <= MOST_BUTTONS and _fit(options, BUTTON_TITLE_LIMIT, BUTTON_ID_LIMIT):
        replies = [{"type": "reply", "reply": {"id": o.data, "title": o.label}} for o in options]
        return "button", {"body": body, "action": {"buttons": replies}}
    if len(options) > MOST_ROWS or not _fit(options, ROW_TEXT_LIMIT, ROW_ID_LIMIT):
        return None
    rows = [_row(option) for option in options]
    if len({row["title"] for row in rows}) < len(rows):
        return None
    action = {"button": "☰", "sections": [{"rows": rows}]}
    return "list", {"body": body, "action": action}


def _fit(options: Sequence[Button], label: int, data: int) -> bool:
    return all(utf16_len(o.label) <= label and utf16_len(o.data) <= data for o in options)


def _row(option: Button) -> Mapping[str, str]:
    """A line of a list; what its title does not hold stands whole below it."""
    if utf16_len(option.label) <= ROW_TITLE_LIMIT:
        return {"id": option.data, "title": option.label}
    title = shorten(option.label, ROW_TITLE_LIMIT, utf16_len)
    return {"id": option.data, "title": title, "description": option.label}


def _file(file: FileOut) -> list[PartBody]:
    captions = pieces(file.caption, LIMIT)
    name = file.name or file.kind
    if not file.url:
        return _text_file(file, captions, name)
    if urlsplit(file.url).scheme not in ("http", "https"):
        return _bodies([*captions, *cut(Styled(f"{name}: {file.url}"), LIMIT)])
    kind = _TYPES.get(file.kind, "document")
    content, caption = _captioned(kind, captions)
    link = f"{caption or literal(name)}\n{file.url}"
    named = {"filename": name} if kind == "document" and file.name else {}
    wire = Wire(
        kind,
        {"link": file.url, **named, **content},
        fallback=link if utf16_len(link) <= LIMIT else "",
    )
    return _with_file(wire, name, caption, captions)


def _text_file(file: FileOut, captions: list[str], name: str) -> list[PartBody]:
    """Text as a document, or as words where it is short or Meta refuses it."""
    if is_blank(file.content):
        return _bodies(captions)
    plain = cut(titled(name, file.content), LIMIT)
    content, caption = _captioned("document", captions)
    wire = Wire(
        "document",
        {"filename": name, **content},
        fallback=plain[0] if len(plain) == 1 else "",
        upload=file.content,
    )
    return _with_file(wire, name, caption, captions)


def _with_file(wire: Wire, name: str, caption: str, captions: list[str]) -> list[PartBody]:
    """A file, behind the words that it does not carry itself."""
    shown = f"{caption}\n[{name}]" if caption else f"[{name}]"
    return [*_bodies([] if caption else captions), _part(wire, shown)]


def _captioned(kind: str, captions: list[str]) -> tuple[Mapping[str, str], str]:
    """The caption that a file of this type can carry."""
    fits = kind != "audio" and len(captions) == 1 and utf16_len(captions[0]) <= CAPTION_LIMIT
    return ({"caption": captions[0]}, captions[0]) if fits else ({}, "")


def fallback_of(body: PartBody) -> PartBody | None:
    """The same part as words, for a file or choices that were refused; or None."""
    wire = Wire.loads(body.wire)
    return _part(words(wire.fallback, wire.options), wire.fallback) if wire.fallback else None


def compose_template(text: str, settings: MetaSettings) -> PartBody | None:
    """A part that may be sent outside the 24 hours; None when no template is configured.

    Where the template has a place for the reply, it takes one line of it, cut if need be.
    """
    if not settings.meta_template_name:
        return None
    line, values = templates.line(text), settings.meta_template_parameters
    parameters = [{"type": "text", "text": value.replace(REPLY, line)} for value in values]
    content: dict[str, object] = {
        "name": settings.meta_template_name,
        "language": {"code": settings.meta_template_language},
    }
    if parameters:
        content["components"] = [{"type": "body", "parameters": parameters}]
    carries = outside_window(settings) is OutsideWindow.ANSWER
    return _part(Wire(_TEMPLATE, content), line if carries else "[template]")


def outside_window(settings: MetaSettings) -> OutsideWindow:
    """The use of the configured template to somebody whose 24 hours are over."""
    return templates.use(settings.meta_template_name, settings.meta_template_parameters)


def is_template(body: PartBody) -> bool:
    """True for an approved template."""
    try:
        return Wire.loads(body.wire).type == _TEMPLATE
    except ValueError:
        return False
