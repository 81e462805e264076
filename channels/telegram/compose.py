"""A reply into parts: text in pieces that fit, files, buttons under the last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.domain.message import ChatKind, clean
from bot.domain.ports import Recipient
from bot.domain.reply import Button, FileOut, PartBody, Reply
from channels.markdown import Styled, render
from channels.telegram.buttons import keyboard
from channels.telegram.render import CAPTION_LIMIT, TEXT_LIMIT, entities
from channels.telegram.wire import NO_PREVIEW, Upload, Wire
from channels.text import cuts, is_blank, shorten, utf16_len

_POINTER = "👇"
_TEASER = 700
"""How much of a reply that is sent as a file is shown above it."""
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
    reply = _storable(reply)
    limits = _Limits(max_parts, over_file)
    parts = _texts(reply.text, limits)
    for file in reply.files:
        parts += _file(file, limits)
    if reply.buttons:
        parts = parts or [_text(Styled(_POINTER))]
        parts[-1] = _with_buttons(parts[-1], reply.buttons)
    if parts:
        parts[0] = _quoting(parts[0], to)
    return [PartBody(text, wire.encode()) for text, wire in parts]


def _storable(reply: Reply) -> Reply:
    """The reply without what neither a database nor Telegram takes."""
    buttons = (Button(clean(b.label), clean(b.data), clean(b.url)) for b in reply.buttons)
    files = (
        replace(
            f,
            url=clean(f.url),
            content=clean(f.content),
            name=clean(f.name),
            caption=clean(f.caption),
        )
        for f in reply.files
    )
    return Reply(clean(reply.text), tuple(buttons), tuple(files))


_Part = tuple[str, Wire]


@dataclass(frozen=True, slots=True)
class _Limits:
    max_parts: int
    over_file: str


def _texts(markdown: str, limits: _Limits) -> list[_Part]:
    if is_blank(markdown):
        return []
    if len(markdown) > 2 * limits.max_parts * TEXT_LIMIT:
        return [_as_document(markdown, Styled(markdown[:TEXT_LIMIT]), limits.over_file)]
    styled = _visible(markdown)
    places = cuts(
        styled.text,
        TEXT_LIMIT,
        lambda start, end: utf16_len(styled.text[start:end]),
        styled.blocks(),
    )
    if len(places) > limits.max_parts:
        return [_as_document(markdown, styled, limits.over_file)]
    return [_text(styled.clip(start, end)) for start, end in places]


def _visible(markdown: str) -> Styled:
    styled = render(markdown)
    return Styled(markdown) if is_blank(styled.text) else styled


def _text(styled: Styled) -> _Part:
    params: dict[str, object] = {"text": styled.text, "link_preview_options": NO_PREVIEW}
    if marks := entities(styled):
        params["entities"] = marks
    plain = styled.written_out()
    if utf16_len(plain) > TEXT_LIMIT:
        plain = styled.text
    return styled.text, Wire("sendMessage", params, plain=plain)


def _as_document(markdown: str, styled: Styled, over: str) -> _Part:
    """The whole reply as a file, its beginning above it; where no file may be sent, as much
    of its beginning as one message holds."""
    teaser = shorten(styled.text, _TEASER, utf16_len)
    caption = f"{shorten(over, _OVER_FILE, utf16_len)}\n\n{teaser}" if over else teaser
    params: dict[str, object] = {"caption": caption}
    upload = Upload("document", "answer.md", markdown)
    plain = shorten(styled.text, TEXT_LIMIT, utf16_len)
    return markdown, Wire("sendDocument", params, upload, plain=plain)


def _file(file: FileOut, limits: _Limits) -> list[_Part]:
    caption = Styled("") if is_blank(file.caption) else _visible(file.caption)
    before: list[_Part] = []
    if utf16_len(caption.text) > CAPTION_LIMIT:
        before, caption = _texts(file.caption, limits), Styled("")
    params: dict[str, object] = {}
    if caption.text:
        params["caption"] = caption.text
    if marks := entities(caption):
        params["caption_entities"] = marks
    if file.url:
        kind = file.kind if file.kind in _METHODS else "document"
        params[kind] = file.url
        plain = "\n".join(line for line in (caption.text, file.url) if line)
        wire = Wire(_METHODS[kind], params, plain=plain)
        return [*before, (caption.text or file.name or file.url, wire)]
    if not file.content:
        return before + ([_text(caption)] if caption.text else [])
    upload = Upload("document", file.name or "file.txt", file.content)
    plain = f"{caption.text}\n\n{file.content}".lstrip("\n")
    fits = utf16_len(plain) <= TEXT_LIMIT and not is_blank(plain)
    wire = Wire("sendDocument", params, upload, plain=plain if fits else None)
    return [*before, (caption.text or upload.name, wire)]


def _with_buttons(part: _Part, buttons: Sequence[Button]) -> _Part:
    text, wire = part
    markup, presses = keyboard(buttons)
    choices = "\n".join(f"• {b.label} {b.url}".rstrip() for b in buttons)
    plain = wire.plain
    if plain is not None and utf16_len(plain) + utf16_len(choices) + 2 <= TEXT_LIMIT:
        plain = f"{plain}\n\n{choices}"
    params = {**wire.params, "reply_markup": markup}
    return text, replace(wire, params=params, plain=plain, presses=presses)


def _quoting(part: _Part, to: Recipient) -> _Part:
    """In a group the first part hangs on the question, and goes out even if that is gone."""
    text, wire = part
    number = to.reply_to
    if to.kind is not ChatKind.GROUP or not (number.isascii() and number.isdigit()):
        return part
    quote = {"message_id": int(number), "allow_sending_without_reply": True}
    params = {**wire.params, "reply_parameters": quote}
    return text, replace(wire, params=params, chat=to.address.chat)
