"""Twilio's forms, statuses and message resources as the domain's values. Pure.

Twilio adds fields without notice: what is not known here is left alone (the raw form is
stored elsewhere). The inbound form carries no time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime

from bot.domain.delivery import DeliveryStatus, PartState
from bot.domain.message import (
    Address,
    Attachment,
    ChatKind,
    Event,
    Ignored,
    Inbound,
    InboundKind,
    PayloadError,
    Quoted,
    Sender,
    clean,
)
from bot.domain.ports import SendRef
from channels.whatsapp_common.content import (
    SENT_TOGETHER,
    Content,
    filled_form,
    location,
    unshown,
    with_files,
    words,
)


@dataclass(frozen=True, slots=True)
class TwilioMessage:
    """One Message resource. `created` in epoch seconds, None when it is not told."""

    sid: str
    direction: str
    origin: str
    target: str
    body: str
    status: str
    error_code: str
    media_count: int
    created: float | None

    @classmethod
    def of(cls, resource: Mapping[str, object]) -> TwilioMessage:
        """Read a resource; what is missing or of another type counts as empty."""
        files = _text(resource, "num_media")
        return cls(
            sid=_text(resource, "sid"),
            direction=_text(resource, "direction"),
            origin=_text(resource, "from"),
            target=_text(resource, "to"),
            body=_text(resource, "body"),
            status=_text(resource, "status"),
            error_code=_text(resource, "error_code"),
            media_count=int(files) if re.fullmatch("[0-9]{1,3}", files) else 0,
            created=_instant(_text(resource, "date_created")),
        )


def _text(resource: Mapping[str, object], field: str) -> str:
    value = resource.get(field)
    return clean(str(value)) if isinstance(value, str | int) else ""


def _instant(value: str) -> float | None:
    """Epoch seconds of an RFC 2822 date."""
    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


RETRIES = "#rc=5&rp=all&ct=1500&rt=4000"
"""Twilio's connection overrides: five tries on any failure, within its own 15 seconds."""

SID = re.compile(r"[A-Za-z0-9]{10,77}")
"""The form that we take as a message's SID: 34 characters today, and short enough for a request
id.
"""

_LARGEST = 2**63 - 1

_STATES = {
    "sent": PartState.SENT,
    "delivered": PartState.DELIVERED,
    "partially_delivered": PartState.DELIVERED,
    "read": PartState.READ,
    "undelivered": PartState.REFUSED,
    "failed": PartState.REFUSED,
    "canceled": PartState.REFUSED,
}

OUTBOUND_STATUSES = frozenset(_STATES) | {"accepted", "queued", "scheduled", "sending"}
"""The statuses that only a message of ours can have."""


def callback_url(base: str, ref: SendRef) -> str:
    """The status URL of one attempt: the part, the attempt, and when it began. The fragment
    is for Twilio and never comes back."""
    bare = base.partition("#")[0]
    ours = f"r={ref.part}&a={ref.attempt}&t={int(ref.started_at)}"
    return f"{bare}{'&' if '?' in bare else '?'}{ours}{RETRIES}"


def parse_status(form: Mapping[str, str], query: Mapping[str, str]) -> DeliveryStatus:
    """The delivery status in a callback: its form, and the query of the URL it came to.

    Raises PayloadError when the form names no message.
    """
    sid = (form.get("MessageSid") or form.get("SmsSid") or "").strip()
    if not SID.fullmatch(sid):
        raise PayloadError("the status has no usable MessageSid")
    status = form.get("MessageStatus") or form.get("SmsStatus") or ""
    return _witness(
        sid,
        status,
        form.get("ErrorCode", ""),
        part=_number(query.get("r", "")),
        attempt=_number(query.get("a", "")),
        began=float(_number(query.get("t", ""))),
    )


def delivery_status_of(row: TwilioMessage) -> DeliveryStatus:
    """The same from a look at Twilio's records, which do not carry our own name."""
    return _witness(row.sid, row.status, row.error_code)


def _witness(
    sid: str, status: str, code: str, *, part: int = 0, attempt: int = 0, began: float = 0.0
) -> DeliveryStatus:
    named = clean(status.strip().lower()[:32])
    state = _STATES.get(named)
    digits = code.strip()
    shown = digits if digits.isascii() and digits.isdigit() and len(digits) <= 9 else ""
    return DeliveryStatus(sid, state, named, part, attempt, shown, began)


def _number(value: str) -> int:
    """A name of ours as it rode in the URL; 0 for anything else."""
    if not (value.isascii() and value.isdigit() and len(value) <= 19):
        return 0
    number = int(value)
    return number if number <= _LARGEST else 0


MOST_MEDIA = 10
"""Twilio's schema allows ten files; WhatsApp sends one a message."""

_VCARD = frozenset({"text/vcard", "text/x-vcard", "text/directory"})

_BY_TYPE = {
    "sticker": InboundKind.STICKER,
    "voice": InboundKind.VOICE,
    "contacts": InboundKind.CONTACT,
    "document": InboundKind.DOCUMENT,
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
    return with_files(InboundKind(files[0].kind), body, files)


def plain(body: str, message_type: str = "") -> Content:
    """A message of words only, or of a kind that did not come through."""
    if not body.strip() and message_type not in ("", "text"):
        return unshown(message_type)
    return words(body)


def content_of(form: Mapping[str, str]) -> Content:
    """The substance of an inbound form, whose values are clean already."""
    body, message_type = form.get("Body", ""), form.get("MessageType", "").lower()
    if files := _files(form, message_type):
        return with_media(body, files)
    for said, data in (("ButtonText", "ButtonPayload"), ("ListTitle", "ListId")):
        if label := _said(form, said) or _said(form, data):
            return Content(InboundKind.BUTTON, label, button=_said(form, data) or label)
    if _said(form, "Latitude") and _said(form, "Longitude"):
        names = form.get("Label", ""), form.get("Address", "")
        return location(form["Latitude"], form["Longitude"], *names, caption=body)
    if not body.strip() and (answers := _said(form, "InteractiveData")):
        return filled_form(answers)
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


def extras(form: Mapping[str, str]) -> dict[str, str]:
    """Further facts worth keeping: the ad that led here, the place, how often it was forwarded."""
    kept = {ours: form[theirs] for theirs, ours in _KEPT.items() if form.get(theirs)}
    if form.get("FrequentlyForwarded", "").lower() == "true":
        kept["forwarded"] = "many times"
    return kept


_SIDS = ("MessageSid", "SmsMessageSid", "SmsSid")


def request_id(sid: str) -> str:
    """Our name for the message that Twilio calls `sid` (`SM...` or `MM...`).

    Raises PayloadError when it is not one.
    """
    if not SID.fullmatch(sid):
        raise PayloadError("the form has no usable MessageSid")
    return f"wa-{sid}"


def parse(form: Mapping[str, str], sender: str = "") -> tuple[Event, ...]:
    """The events of one inbound form; `sender` is our own address, empty to take any.

    Raises PayloadError when the message can't be named or has no sender.
    """
    if rule := _not_for_us(form, sender):
        return (Ignored(rule),)
    sid = next((v for name in _SIDS if (v := form.get(name, "").strip())), "")
    name = request_id(sid)
    if not form.get("From", "").strip():
        raise PayloadError("the form has no From")
    return (_from_form(name, sid, form),)


def _not_for_us(form: Mapping[str, str], sender: str) -> str:
    """The rule by which a form is answered by nothing; empty for a person's message."""
    status = (form.get("MessageStatus") or form.get("SmsStatus") or "").lower()
    origin, target = form.get("From", ""), form.get("To", "")
    if status in OUTBOUND_STATUSES:
        return "a status callback on the message URL"
    if form.get("Direction", "").startswith("outbound") or (origin and origin in (sender, target)):
        return "our own message"
    if origin and not origin.startswith("whatsapp:"):
        return "not a WhatsApp message"
    if sender and target and target != sender:
        return "for another sender"
    return ""


def _from_form(name: str, sid: str, raw: Mapping[str, str]) -> Inbound:
    form = {field: clean(value) for field, value in raw.items()}
    changed = sorted(clean(field) for field in form if form[field] != raw[field])
    kept = extras(form)
    if changed:
        kept["cleaned"] = ",".join(changed)
    origin, person = form["From"], form.get("ExternalUserId", "")
    flags = (form.get("Forwarded", ""), form.get("FrequentlyForwarded", ""))
    forwarded = "true" in (flag.lower() for flag in flags)
    message = _message(name, sid, origin, content_of(form))
    quoted = _quoted(form)
    return replace(
        message,
        sender=Sender(id=person or origin, name=form.get("ProfileName", "")),
        quoted=quoted,
        quoted_request="" if quoted is None else request_id(quoted.provider_id),
        goes_on=message.goes_on or forwarded,
        forwarded_from="somebody" if forwarded else "",
        aliases=tuple(dict.fromkeys(a for a in (person, origin) if a)),
        extra=kept,
    )


SHORTEST_PIECE = 1500
"""Characters; Twilio's bodies end at 1600."""


def _message(name: str, sid: str, origin: str, content: Content) -> Inbound:
    return Inbound(
        request_id=name,
        address=Address(origin),
        chat_kind=ChatKind.PRIVATE,
        kind=content.kind,
        text=content.text,
        sender=Sender(id=origin),
        provider_id=sid,
        attachments=content.attachments,
        goes_on=content.kind in SENT_TOGETHER or len(content.text) >= SHORTEST_PIECE,
        button=content.button,
        aliases=(origin,),
    )


def _quoted(form: Mapping[str, str]) -> Quoted | None:
    sid = form.get("OriginalRepliedMessageSid", "").strip()
    if not SID.fullmatch(sid):
        return None
    author = form.get("OriginalRepliedMessageSender", "")
    ours = bool(author) and author == form.get("To", "")
    return Quoted(sid, from_us=ours)


def parse_message(row: TwilioMessage, media: tuple[Attachment, ...] = ()) -> Inbound:
    """An inbound message as Twilio's list shows it: poorer than its form, but with a time.

    It has no name, scoped user id, button, quote or location, and files only when the
    caller looked them up. Raises PayloadError when it can't be named or has no sender.
    """
    name = request_id(row.sid)
    if not row.origin:
        raise PayloadError("the message has no From")
    kind = "file" if row.media_count else ""
    content = with_media(row.body, media) if media else plain(row.body, kind)
    message = _message(name, row.sid, row.origin, content)
    return replace(message, sent_at=row.created, extra={"source": "list"})
