"""A reply as the messages that carry it, each stored as JSON in the outbox. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bot.domain.ports import OutsideWindow
from bot.domain.reply import Button, FileOut, PartBody, Reply
from channels.markdown import Styled
from channels.text import cleaned, is_blank, utf16_len
from channels.whatsapp.settings import TwilioSettings
from channels.whatsapp_common import markup, templates
from channels.whatsapp_common.choices import listed, options_among
from channels.whatsapp_common.markup import cut, literal, titled
from channels.whatsapp_common.templates import REPLY
from channels.whatsapp_common.wire import StoredWire


@dataclass(frozen=True, slots=True)
class Wire(StoredWire):
    """The content of one create.

    `fallback` is sent instead when Twilio refuses the file or the content. With `content`
    (an `HX...` template) `body` is only what the person will read, where that is known.
    """

    body: str = ""
    media: str = ""
    fallback: str = ""
    content: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)


LIMIT = 1600
"""UTF-16 units; Twilio refuses a longer body (21617)."""
CAPTION_LIMIT = 1024
BUTTON_LABEL_LIMIT = 20
_CAPTIONED = frozenset({"photo", "video"})
"""The kinds of files under which WhatsApp shows words."""


def compose(reply: Reply, settings: TwilioSettings) -> list[PartBody]:
    """The parts of a reply in order: words, the choices under them, files."""
    if reply.silent:
        return []
    reply = cleaned(reply)
    texts, buttons = pieces(reply.text), reply.buttons
    parts = _with_choices(texts, buttons, settings) if buttons else _bodies(texts)
    return parts + [part for file in reply.files for part in _file(file)]


def pieces(markdown: str) -> list[str]:
    """A Markdown text as the bodies of the messages that carry it, in order."""
    return markup.pieces(markdown, LIMIT)


def _bodies(texts: Sequence[str]) -> list[PartBody]:
    return [_part(Wire(body=text)) for text in texts]


def _part(wire: Wire, text: str = "") -> PartBody:
    return PartBody(text or wire.body, wire.dumps())


def _with_choices(
    texts: list[str], buttons: tuple[Button, ...], settings: TwilioSettings
) -> list[PartBody]:
    options, lines = options_among(buttons), listed(buttons)
    last = texts[-1] if texts else ""
    joined = f"{last}\n\n{literal(lines)}" if last else literal(lines)
    tail = [joined] if utf16_len(joined) <= LIMIT else [*texts[-1:], *cut(Styled(lines), LIMIT)]
    *before, final = [*texts[:-1], *tail]
    content = settings.twilio_choice_templates.get(len(options), "")
    if content and len(options) == len(buttons) and _fits_buttons(last, options):
        named = {"1": last}
        for number, option in enumerate(options):
            named[str(2 * number + 2)] = option.label
            named[str(2 * number + 3)] = option.data
        wire = Wire(body=last, content=content, variables=named, fallback=joined, options=options)
        return [*_bodies(texts[:-1]), _part(wire, joined)]
    return [*_bodies(before), _part(Wire(body=final, options=options))]


def _fits_buttons(text: str, options: Sequence[Button]) -> bool:
    """True when WhatsApp takes these words and labels as buttons; a variable is one line."""
    short = all(0 < utf16_len(o.label) <= BUTTON_LABEL_LIMIT for o in options)
    return short and bool(text) and "\n" not in text and utf16_len(text) <= CAPTION_LIMIT


def _file(file: FileOut) -> list[PartBody]:
    captions = pieces(file.caption)
    name = file.name or file.kind
    if not file.url:
        if is_blank(file.content):
            return _bodies(captions)
        return _bodies([*captions, *cut(titled(name, file.content), LIMIT)])
    if urlsplit(file.url).scheme not in ("http", "https"):
        return _bodies([*captions, *cut(Styled(f"{name}: {file.url}"), LIMIT)])
    fits = len(captions) == 1 and utf16_len(captions[0]) <= CAPTION_LIMIT
    caption = captions[0] if fits and file.kind in _CAPTIONED else ""
    link = f"{caption or literal(name)}\n{file.url}"
    shown = f"{caption}\n[{name}]" if caption else f"[{name}]"
    wire = Wire(body=caption, media=file.url, fallback=link if utf16_len(link) <= LIMIT else "")
    return [*_bodies([] if caption else captions), _part(wire, shown)]


def fallback_of(body: PartBody) -> PartBody | None:
    """The same part as words with a link, for a file or content that was refused; or None."""
    wire = Wire.loads(body.wire)
    if not wire.fallback:
        return None
    return _part(Wire(body=wire.fallback, options=wire.options))


def compose_template(text: str, settings: TwilioSettings) -> PartBody | None:
    """A part that may be sent outside the 24 hours; None when no template is configured.

    Where the template has a place for the reply, it takes one line of it, cut if need be.
    """
    if not settings.twilio_template_sid:
        return None
    line, values = templates.line(text), settings.twilio_template_variables
    named = {name: value.replace(REPLY, line) for name, value in values.items()}
    shown = line if outside_window(settings) is OutsideWindow.ANSWER else ""
    return _part(Wire(content=settings.twilio_template_sid, variables=named), shown or "[template]")


def outside_window(settings: TwilioSettings) -> OutsideWindow:
    """The use of the configured template to somebody whose 24 hours are over."""
    return templates.use(settings.twilio_template_sid, settings.twilio_template_variables.values())


def is_template(body: PartBody) -> bool:
    """True for an approved template, and not for a choice that has words to fall back on."""
    try:
        wire = Wire.loads(body.wire)
    except ValueError:
        return False
    return bool(wire.content) and not wire.fallback
