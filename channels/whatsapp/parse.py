"""Twilio's forms and message resources as the domain's events. Pure.

Twilio adds fields without notice: what is not known here is left alone (the raw form is
stored elsewhere). The inbound form carries no time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.domain.message import (
    Address,
    Attachment,
    ChatKind,
    Event,
    Ignored,
    Inbound,
    PayloadError,
    Quoted,
    Sender,
    clean,
)
from channels.whatsapp.content import Content, content_of, extras, plain, with_media
from channels.whatsapp.listed import Listed
from channels.whatsapp.witness import OUTBOUND_STATUSES, SID, parse_status

__all__ = ["parse", "parse_listed", "parse_status", "request_id"]

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
    return (_inbound(name, sid, form),)


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


def _inbound(name: str, sid: str, raw: Mapping[str, str]) -> Inbound:
    form = {field: clean(value) for field, value in raw.items()}
    changed = sorted(field for field in form if form[field] != raw[field])
    content = content_of(form)
    kept = extras(form)
    if changed:
        kept["cleaned"] = ",".join(changed)
    return _message(
        name,
        sid,
        form["From"],
        content,
        person=form.get("ExternalUserId", ""),
        display_name=form.get("ProfileName", ""),
        quoted=_quoted(form),
        forwarded_from=_forwarded(form),
        extra=kept,
    )


def _message(
    name: str,
    sid: str,
    origin: str,
    content: Content,
    *,
    person: str = "",
    display_name: str = "",
    quoted: Quoted | None = None,
    forwarded_from: str = "",
    sent_at: float | None = None,
    extra: dict[str, str] | None = None,
) -> Inbound:
    return Inbound(
        request_id=name,
        address=Address(origin),
        chat_kind=ChatKind.PRIVATE,
        kind=content.kind,
        text=content.text,
        sender=Sender(id=person or origin, name=display_name),
        provider_id=sid,
        sent_at=sent_at,
        attachments=content.attachments,
        quoted=quoted,
        forwarded_from=forwarded_from,
        button=content.button,
        aliases=tuple(dict.fromkeys(a for a in (person, origin) if a)),
        extra=extra or {},
    )


def _quoted(form: Mapping[str, str]) -> Quoted | None:
    sid = form.get("OriginalRepliedMessageSid", "").strip()
    if not sid:
        return None
    author = form.get("OriginalRepliedMessageSender", "")
    return Quoted(provider_id=sid, from_us=bool(author) and author == form.get("To", ""))


def _forwarded(form: Mapping[str, str]) -> str:
    flags = (form.get("Forwarded", ""), form.get("FrequentlyForwarded", ""))
    return "somebody" if "true" in (flag.lower() for flag in flags) else ""


def parse_listed(resource: Mapping[str, object], media: Sequence[Attachment] = ()) -> Inbound:
    """An inbound message as Twilio's list shows it: poorer than its form, but with a time.

    It has no name, scoped user id, button, quote or location, and files only when the
    caller looked them up. Raises PayloadError when it can't be named or has no sender.
    """
    row = Listed.of(resource)
    name = request_id(row.sid)
    if not row.origin:
        raise PayloadError("the message has no From")
    files = tuple(media)
    content = (
        with_media(row.body, files) if files else plain(row.body, "file" if row.media_count else "")
    )
    return _message(
        name, row.sid, row.origin, content, sent_at=row.created, extra={"source": "list"}
    )
