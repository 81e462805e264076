"""The contents of a message as Meta describes it.

A type that we know and whose object is missing or odd reads as empty, and one that we do not
know is said to be that: the person wrote something, and hears of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bot.domain.message import Attachment, InboundKind, PayloadError, one_line
from channels.raw import Raw, joined, obj, objs, shown_number, string, title
from channels.whatsapp_common.content import (
    DESCRIPTIONS,
    Content,
    filled_form,
    location,
    unshown,
    with_files,
    words,
)

_MOST_LISTED = 50
"""Items of an order, or cards, that are told."""

_MEDIA = {
    "image": InboundKind.PHOTO,
    "video": InboundKind.VIDEO,
    "audio": InboundKind.AUDIO,
    "voice": InboundKind.VOICE,
    "document": InboundKind.DOCUMENT,
    "sticker": InboundKind.STICKER,
}


def content_of(message: Raw) -> Content:
    """The substance of a person's message, with the ad that led here. Raises PayloadError for
    a text that has no words in any form."""
    kind = type_of(message)
    read = _READ.get(kind)
    content = _unknown(message, kind) if read is None else read(message)
    ad = _ad(message)
    if not ad:
        return content
    text = f"{content.text}\n{ad}"
    return Content(content.kind, text, content.attachments, content.button)


def type_of(message: Raw) -> str:
    """The type that a message names; one that names none is what it has an object of."""
    named = string(message, "type")
    if named:
        return named
    return next((kind for kind in _READ if isinstance(message.get(kind), Mapping)), "")


def number(raw: Raw, key: str) -> str:
    """A number as it is shown; Meta writes some as strings."""
    return one_line(string(raw, key) or shown_number(raw, key), 40)


def _text(message: Raw) -> Content:
    body = obj(message, "text").get("body")
    if not isinstance(body, str):
        raise PayloadError("a text without words")
    return words(string(obj(message, "text"), "body"))


def _media(kind: str) -> Callable[[Raw], Content]:
    def read(message: Raw) -> Content:
        raw = obj(message, kind)
        voice = kind == "audio" and raw.get("voice") is True
        what = InboundKind.VOICE if voice else _MEDIA[kind]
        name = string(raw, "id")
        file = Attachment(
            kind=what.value,
            ref=joined(name, string(raw, "sha256")),
            mime=string(raw, "mime_type"),
            name=string(raw, "filename"),
        )
        return with_files(what, string(raw, "caption"), (file,) if name else ())

    return read


def _location(message: Raw) -> Content:
    raw = obj(message, "location")
    point = number(raw, "latitude"), number(raw, "longitude")
    if not all(point):
        return unshown("location")
    return location(*point, string(raw, "name"), string(raw, "address"))


def _contacts(message: Raw) -> Content:
    cards = [_card(card) for card in objs(message, "contacts")[:_MOST_LISTED]]
    shown = "; ".join(card for card in cards if card)
    described = f"[a contact card: {shown}]" if shown else DESCRIPTIONS[InboundKind.CONTACT]
    return Content(InboundKind.CONTACT, described)


def _card(card: Raw) -> str:
    name = obj(card, "name")
    full = title(name, "formatted_name") or joined(
        title(name, "first_name"), title(name, "last_name")
    )
    org = title(obj(card, "org"), "company")
    phones = [title(phone, "phone") or title(phone, "wa_id") for phone in objs(card, "phones")]
    emails = [title(email, "email") for email in objs(card, "emails")]
    return joined(full, org, *phones, *emails, by=", ")


def _interactive(message: Raw) -> Content:
    raw = obj(message, "interactive")
    for key in ("button_reply", "list_reply"):
        reply = obj(raw, key)
        if pressed := _pressed(string(reply, "title"), string(reply, "id")):
            return pressed
    form = obj(raw, "nfm_reply")
    if answers := string(form, "response_json") or string(form, "body"):
        return filled_form(answers)
    return unshown(string(raw, "type") or "interactive")


def _button(message: Raw) -> Content:
    raw = obj(message, "button")
    return _pressed(string(raw, "text"), string(raw, "payload")) or unshown("button")


def _pressed(label: str, data: str) -> Content | None:
    shown = next((words for words in (label, data) if words.strip()), "")
    return Content(InboundKind.BUTTON, shown, button=data or label) if shown else None


def _order(message: Raw) -> Content:
    raw = obj(message, "order")
    items = [_item(item) for item in objs(raw, "product_items")]
    listed = "; ".join(items[:_MOST_LISTED])
    more = len(items) - _MOST_LISTED
    described = joined(listed, f"and {more} more" if more > 0 else "", by="; ")
    order = f"[an order: {described or 'nothing'}]"
    said = string(raw, "text")
    return Content(InboundKind.OTHER, f"{said}\n{order}" if said.strip() else order)


def _item(item: Raw) -> str:
    name = title(item, "product_retailer_id") or "an item"
    count = number(item, "quantity")
    price = joined(number(item, "item_price"), title(item, "currency"))
    return joined(joined(name, count, by=" x "), price, by=", ")


def _unknown(message: Raw, kind: str) -> Content:
    """A message that WhatsApp itself calls unsupported, or of a type of later days."""
    return unshown(string(obj(message, "unsupported"), "type") or kind)


def _ad(message: Raw) -> str:
    """The ad or the post under which the person began to write, in words."""
    raw = obj(message, "referral")
    said = joined(title(raw, "headline"), title(raw, "body"), title(raw, "source_url"), by=", ")
    return f"[from an ad: {said}]" if said else ""


_READ: Mapping[str, Callable[[Raw], Content]] = {
    "text": _text,
    **{kind: _media(kind) for kind in _MEDIA},
    "location": _location,
    "contacts": _contacts,
    "interactive": _interactive,
    "button": _button,
    "order": _order,
}
"""The types in which a person says something."""

_KEPT = {
    "headline": "referral_headline",
    "body": "referral_body",
    "source_id": "referral_id",
    "source_type": "referral_type",
    "source_url": "referral_url",
    "ctwa_clid": "referral_click_id",
}


def extras(message: Raw) -> dict[str, str]:
    """Further facts worth keeping: the ad that led here, the product that was asked about, how
    often it was forwarded."""
    referral, context = obj(message, "referral"), obj(message, "context")
    product = obj(context, "referred_product")
    kept = {ours: said for theirs, ours in _KEPT.items() if (said := string(referral, theirs))}
    if sku := string(product, "product_retailer_id"):
        kept["product"] = sku
    if context.get("frequently_forwarded") is True:
        kept["forwarded"] = "many times"
    return kept
