"""A reply into parts: text in pieces that fit, files, buttons under the last one.

A part is stored as the call that sends it, fixed down to its parameters: plain text and
entities, so that Telegram parses nothing. The address is not in it, because a chat may move
between composing and sending.

Telegram carries at most 64 bytes of data a button. Longer data stays with us, in the stored
part, and a key made of its hash travels instead; `full_data` finds it again. The label is
the press's text in any case.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple

from bot.domain.message import ChatKind
from bot.domain.ports import Recipient
from bot.domain.reply import Button, FileOut, PartBody, Reply
from channels.markdown import Span, Style, Styled, render
from channels.text import Size, cleaned, cuts, is_blank, shorten, sizes, touched, utf16_len

_log = logging.getLogger("answerback.telegram")

NO_PREVIEW = {"is_disabled": True}


class Upload(NamedTuple):
    """A text file that is sent along as parameter `field`."""

    field: str
    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Wire:
    """One call. `chat` is the chat that the quoted message is in; message ids mean nothing
    anywhere else. `plain` is what is sent without any formatting when Telegram refuses this
    form, None when there is no plainer one. `presses` is the full data of buttons whose
    data is too long for Telegram, by the key that stands for it."""

    method: str
    params: Mapping[str, object]
    upload: Upload | None = None
    chat: str = ""
    plain: str | None = None
    presses: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> str:
        """The same part gives the same JSON, whenever it is encoded. A plain text that is the
        text itself is stored once."""
        stored = {k: v for k, v in asdict(self).items() if v or k == "params"}
        if self.plain is not None and self.plain == self.params.get("text"):
            stored["plain"] = True
        return json.dumps(stored, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def decode(text: str) -> Wire:
        """Raises ValueError for what `encode` did not write."""
        try:
            stored = json.loads(text)
            if stored.get("plain") is True:
                stored["plain"] = stored["params"]["text"]
            if "upload" in stored:
                stored["upload"] = Upload(*stored["upload"])
            return Wire(**stored)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("not a stored Telegram message") from error

    def unquoted(self) -> Wire:
        """The same part that hangs on no message."""
        params = {k: v for k, v in self.params.items() if k != "reply_parameters"}
        return replace(self, params=params, chat="")

    def plainest(self) -> Wire | None:
        """The same words without entities, buttons, file or quote."""
        if self.plain is None:
            return None
        return Wire("sendMessage", {"text": self.plain, "link_preview_options": NO_PREVIEW})


_DATA_BYTES = 64
_LABEL_LIMIT = 128
_BUTTONS_LIMIT = 100
"""Telegram refuses more under one message."""
_KEY = "sha256:"


def _key(data: str) -> str:
    return _KEY + hashlib.sha256(data.encode()).hexdigest()[:40]


def keyboard(buttons: Sequence[Button]) -> tuple[dict[str, object], dict[str, str]]:
    """The inline keyboard, one button a row, and the long data by its keys."""
    rows: list[list[dict[str, str]]] = []
    presses: dict[str, str] = {}
    for button in buttons:
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
    """True when a press carries a key instead of the button's own data."""
    return data.startswith(_KEY) and len(data) == len(_KEY) + 40


def full_data(data: str, wires: Iterable[str]) -> str:
    """The button's own data, looked up in the stored parts of its chat; else `data`."""
    for wire in wires if is_key(data) else ():
        try:
            presses = Wire.decode(wire).presses
        except ValueError:
            continue
        if data in presses:
            return presses[data]
    return data


TEXT_LIMIT = 4096
"""Telegram counts code points; UTF-16 units are never fewer, so counting them is safe."""
CAPTION_LIMIT = 1024
ENTITY_LIMIT = 100
"""Telegram shows so many of a message and ignores the rest."""

_TYPES = {
    Style.BOLD: "bold",
    Style.ITALIC: "italic",
    Style.STRIKE: "strikethrough",
    Style.CODE: "code",
    Style.PRE: "pre",
    Style.QUOTE: "blockquote",
    Style.LINK: "text_link",
}
_FIRST_DROPPED = {Style.BOLD: 2, Style.ITALIC: 2, Style.STRIKE: 2, Style.CODE: 1}
"""The entities that go first where no number of parts holds all entities: looks, then code, and
never an address."""
_CODE = (Style.CODE, Style.PRE)
_FONTS = (Style.BOLD, Style.ITALIC, Style.STRIKE)


def entities(styled: Styled) -> list[dict[str, object]]:
    """MessageEntity objects; offsets and lengths in UTF-16 code units."""
    found: list[dict[str, object]] = []
    shown = sorted(_compatible(styled), key=lambda s: _FIRST_DROPPED.get(s.style, 0))[:ENTITY_LIMIT]
    for span in sorted(shown, key=lambda s: (s.start, -s.end)):
        offset = utf16_len(styled.text[: span.start])
        length = utf16_len(styled.text[span.start : span.end])
        entity: dict[str, object] = {"type": _TYPES[span.style], "offset": offset, "length": length}
        if span.style is Style.LINK:
            entity["url"] = span.value
        elif span.style is Style.PRE and span.value:
            entity["language"] = span.value
        found.append(entity)
    return found


def _compatible(styled: Styled) -> list[Span]:
    """Telegram allows nothing inside code: a font stops before it, a link wins over it."""
    links = [s for s in styled.spans if s.style is Style.LINK]
    code = [
        s
        for s in styled.spans
        if s.style in _CODE and not any(o.start <= s.start and s.end <= o.end for o in links)
    ]
    spans: list[Span] = []
    for span in styled.spans:
        if span.style in _FONTS:
            spans += _without(span, code)
        elif span.style not in _CODE or span in code:
            spans.append(span)
    return [s for s in spans if styled.text[s.start : s.end].strip()]


def _without(span: Span, holes: Iterable[Span]) -> Iterator[Span]:
    start = span.start
    for hole in sorted(holes, key=lambda s: s.start):
        if hole.end <= start or hole.start >= span.end:
            continue
        if hole.start > start:
            yield replace(span, start=start, end=hole.start)
        start = hole.end
    if start < span.end:
        yield replace(span, start=start)


_POINTER = "👇"
_TEASER = 700
"""The length of the beginning that is shown above a reply sent as a file, in characters."""
_OVER_FILE = 300

_METHODS = {
    "photo": "sendPhoto",
    "document": "sendDocument",
    "voice": "sendVoice",
    "audio": "sendAudio",
    "video": "sendVideo",
}


def compose(reply: Reply, to: Recipient, max_parts: int, over_file: str = "") -> Sequence[PartBody]:
    """The parts of a reply, in order; none when nobody would see anything. `over_file` is
    what stands over words that become a file because they are too many."""
    if reply.silent:
        return ()
    reply = cleaned(reply)
    parts = _texts(reply.text, max_parts, over_file)
    for file in reply.files:
        parts += _file(file, max_parts, over_file)
    for number, buttons in enumerate(_keyboards(reply.buttons)):
        if number or not parts or not _has_room(parts[-1], buttons):
            parts.append(_text(Styled(_POINTER)))
        parts[-1] = _with_buttons(parts[-1], buttons)
    if parts:
        parts[0] = _quoting(parts[0], to)
    return [PartBody(text, wire.encode()) for text, wire in parts]


_Part = tuple[str, Wire]


def _texts(markdown: str, max_parts: int, over_file: str) -> list[_Part]:
    if is_blank(markdown):
        return []
    if len(markdown) > 2 * max_parts * TEXT_LIMIT:
        return [_as_document(markdown, Styled(markdown[:TEXT_LIMIT]), over_file)]
    styled = _visible(markdown)
    shown = _compatible(styled)
    places = _places(styled, shown)
    if len(places) > max_parts:
        places = _places(styled, [s for s in shown if s.style not in _FIRST_DROPPED])
        if len(places) > max_parts:
            return [_as_document(markdown, styled, over_file)]
        _log.warning("some of %d styles are left out, for want of parts", len(shown))
    return [_text(styled.clip(start, end)) for start, end in places]


def _places(styled: Styled, kept: Sequence[Span]) -> list[tuple[int, int]]:
    """The parts in which all that is `kept` of the styles can be shown."""
    return cuts(styled.text, TEXT_LIMIT, _size(styled, kept), styled.blocks())


def _size(styled: Styled, kept: Sequence[Span]) -> Size:
    """The size of a part: its words with the addresses of its links, so that they fit in one
    message when its entities are refused; and at least as much of the limit as the entities of
    what is `kept` take of theirs."""
    links = [s for s in styled.spans if s.style is Style.LINK]
    written = sizes(styled.text, [(s.start, s.end, utf16_len(f" ({s.value})")) for s in links])
    count = touched(len(styled.text), [(s.start, s.end, 1) for s in kept])
    return lambda start, end: max(
        written(start, end), -(-TEXT_LIMIT * count(start, end) // ENTITY_LIMIT)
    )


def _visible(markdown: str) -> Styled:
    styled = render(markdown)
    return Styled(markdown) if is_blank(styled.text) else styled


def _text(styled: Styled) -> _Part:
    params: dict[str, object] = {"text": styled.text, "link_preview_options": NO_PREVIEW}
    if marks := entities(styled):
        params["entities"] = marks
    return styled.text, Wire("sendMessage", params, plain=styled.written_out())


def _as_document(markdown: str, styled: Styled, over: str) -> _Part:
    """The whole reply as a file, its beginning above it; where no file may be sent, as much
    of its beginning as one message holds."""
    teaser = shorten(styled.text, _TEASER, utf16_len)
    caption = f"{shorten(over, _OVER_FILE, utf16_len)}\n\n{teaser}" if over else teaser
    params: dict[str, object] = {"caption": caption}
    upload = Upload("document", "answer.md", markdown)
    plain = shorten(styled.written_out(), TEXT_LIMIT, utf16_len)
    return markdown, Wire("sendDocument", params, upload, plain=plain)


def _file(file: FileOut, max_parts: int, over_file: str) -> list[_Part]:
    caption = Styled("") if is_blank(file.caption) else _visible(file.caption)
    before: list[_Part] = []
    too_many = len(_compatible(caption)) > ENTITY_LIMIT
    if too_many or utf16_len(caption.written_out()) > CAPTION_LIMIT:
        before, caption = _texts(file.caption, max_parts, over_file), Styled("")
    params: dict[str, object] = {}
    if caption.text:
        params["caption"] = caption.text
    if marks := entities(caption):
        params["caption_entities"] = marks
    if file.url:
        kind = file.kind if file.kind in _METHODS else "document"
        params[kind] = file.url
        plain = "\n".join(line for line in (caption.written_out(), file.url) if line)
        wire = Wire(_METHODS[kind], params, plain=plain)
        return [*before, (caption.text or file.name or file.url, wire)]
    if not file.content:
        return before + ([_text(caption)] if caption.text else [])
    upload = Upload("document", file.name or "file.txt", file.content)
    plain = f"{caption.written_out()}\n\n{file.content}".lstrip("\n")
    fits = utf16_len(plain) <= TEXT_LIMIT and not is_blank(plain)
    wire = Wire("sendDocument", params, upload, plain=plain if fits else None)
    return [*before, (caption.text or upload.name, wire)]


def _keyboards(buttons: Sequence[Button]) -> Iterator[Sequence[Button]]:
    """The buttons of one message after the other: as many as Telegram takes, and as can be written
    out where it takes none."""
    under: list[Button] = []
    for button in buttons:
        more = [*under, button]
        if under and (len(more) > _BUTTONS_LIMIT or not _has_room(_text(Styled(_POINTER)), more)):
            yield under
            more = [button]
        under = more
    if under:
        yield under


def _choices(buttons: Sequence[Button]) -> str:
    return "\n".join(f"• {b.label} {b.url}".rstrip() for b in buttons)


def _has_room(part: _Part, buttons: Sequence[Button]) -> bool:
    """Tell whether the plainest form of a part holds the choices too; a file's may have none."""
    plain = part[1].plain
    return plain is None or utf16_len(f"{plain}\n\n{_choices(buttons)}") <= TEXT_LIMIT


def _with_buttons(part: _Part, buttons: Sequence[Button]) -> _Part:
    text, wire = part
    markup, presses = keyboard(buttons)
    plain = wire.plain
    if plain is not None:
        plain = shorten(f"{plain}\n\n{_choices(buttons)}", TEXT_LIMIT, utf16_len)
    params = {**wire.params, "reply_markup": markup}
    return text, replace(wire, params=params, plain=plain, presses=presses)


def _quoting(part: _Part, to: Recipient) -> _Part:
    """Hang the first part on the question in a group; it goes out even if that is gone."""
    text, wire = part
    number = to.reply_to
    if to.kind is not ChatKind.GROUP or not (number.isascii() and number.isdigit()):
        return part
    quote = {"message_id": int(number), "allow_sending_without_reply": True}
    params = {**wire.params, "reply_parameters": quote}
    return text, replace(wire, params=params, chat=to.address.chat)
