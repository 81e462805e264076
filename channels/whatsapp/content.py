"""What a form holds: its kind, its files, and words for what has none. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.message import Attachment, InboundKind

MOST_MEDIA = 10
"""Twilio's schema allows ten files; WhatsApp sends one a message."""

_VCARD = frozenset({"text/vcard", "text/x-vcard", "text/directory"})

_BY_TYPE = {
    "sticker": InboundKind.STICKER,
    "voice": InboundKind.VOICE,
    "contacts": InboundKind.CONTACT,
    "document": InboundKind.DOCUMENT,
}

_DESCRIPTIONS = {
    InboundKind.PHOTO: "[a photo]",
    InboundKind.VOICE: "[a voice message]",
    InboundKind.AUDIO: "[an audio file]",
    InboundKind.VIDEO: "[a video]",
    InboundKind.DOCUMENT: "[a document]",
    InboundKind.STICKER: "[a sticker]",
    InboundKind.CONTACT: "[a contact card]",
}

_KEPT = {
    "MessageType": "message_type",
    "Latitude": "latitude",
    "Longitude": "longitude",
    "Label": "label",
    "Address": "address",
    "InteractiveData": "form",
    "OptOutType": "opt_out_type",
    "ReferralHeadline": "referral_headline",
    "ReferralBody": "referral_body",
    "ReferralSourceId": "referral_id",
    "ReferralSourceType": "referral_type",
    "ReferralSourceUrl": "referral_url",
    "ReferralMediaUrl": "referral_media_url",
    "ReferralCtwaClid": "referral_click_id",
}


@dataclass(frozen=True, slots=True)
class Content:
    """A message's substance. `text` is never blank: what has no words is described."""

    kind: InboundKind
    text: str
    attachments: tuple[Attachment, ...] = ()
    button: str = ""


def kind_of_media(mime: str, message_type: str = "") -> InboundKind:
    """The kind of a file by its media type; WhatsApp's own word for the message goes first."""
    bare = mime.partition(";")[0].strip().lower()
    if named := _BY_TYPE.get(message_type):
        return named
    if bare in _VCARD:
        return InboundKind.CONTACT
    if bare == "image/webp":
        return InboundKind.STICKER
    if bare == "audio/ogg":
        return InboundKind.VOICE
    family = {"image": InboundKind.PHOTO, "audio": InboundKind.AUDIO, "video": InboundKind.VIDEO}
    return family.get(bare.partition("/")[0], InboundKind.DOCUMENT)


def attachment(url: str, mime: str, message_type: str = "") -> Attachment:
    """A file by its URL; Twilio tells neither name nor size."""
    return Attachment(kind=kind_of_media(mime, message_type).value, ref=url, mime=mime)


def with_media(body: str, files: tuple[Attachment, ...]) -> Content:
    """A message with files; its body is the caption."""
    kind = InboundKind(files[0].kind)
    return Content(kind, body if body.strip() else _DESCRIPTIONS[kind], files)


def plain(body: str, message_type: str = "") -> Content:
    """A message of words only, or of a kind that did not come through."""
    if body.strip():
        return Content(InboundKind.TEXT, body)
    if message_type in ("", "text"):
        return Content(InboundKind.OTHER, "[an empty message]")
    return Content(InboundKind.OTHER, f"[a message that can't be shown: {message_type[:40]}]")


def content_of(form: Mapping[str, str]) -> Content:
    """The substance of an inbound form, whose values are clean already."""
    body, message_type = form.get("Body", ""), form.get("MessageType", "").lower()
    if files := _files(form, message_type):
        return with_media(body, files)
    for words, data in (("ButtonText", "ButtonPayload"), ("ListTitle", "ListId")):
        if label := _said(form, words) or _said(form, data):
            return Content(InboundKind.BUTTON, label, button=_said(form, data) or label)
    if form.get("Latitude", "").strip() and form.get("Longitude", "").strip():
        return Content(InboundKind.LOCATION, _location(form))
    if not body.strip() and form.get("InteractiveData", "").strip():
        return Content(InboundKind.RICH, f"[a filled-in form: {form['InteractiveData']}]")
    return plain(body, message_type)


def _said(form: Mapping[str, str], name: str) -> str:
    value = form.get(name, "")
    return value if value.strip() else ""


def _files(form: Mapping[str, str], message_type: str) -> tuple[Attachment, ...]:
    return tuple(
        attachment(url, form.get(f"MediaContentType{n}", ""), message_type)
        for n in range(MOST_MEDIA)
        if (url := form.get(f"MediaUrl{n}", "").strip())
    )


def _location(form: Mapping[str, str]) -> str:
    place = ", ".join(v for name in ("Label", "Address") if (v := form.get(name, "").strip()))
    point = f"{form['Latitude'].strip()}, {form['Longitude'].strip()}"
    words = f"[a location: {point}{f' ({place})' if place else ''}]"
    body = form.get("Body", "").strip()
    return f"{body}\n{words}" if body and body not in place else words


def extras(form: Mapping[str, str]) -> dict[str, str]:
    """What else is worth keeping: the ad that led here, the place, how often it was forwarded."""
    kept = {ours: form[theirs] for theirs, ours in _KEPT.items() if form.get(theirs)}
    if form.get("FrequentlyForwarded", "").lower() == "true":
        kept["forwarded"] = "many times"
    return kept
