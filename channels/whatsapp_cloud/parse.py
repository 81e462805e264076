"""Messages and statuses of Meta's webhooks as the domain's values. Pure.

Meta adds fields and types without notice: what is not known here is left alone (the raw message
is stored elsewhere), and a message of an unknown type is still somebody's message.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from bot.domain.delivery import DeliveryStatus, PartState
from bot.domain.message import (
    Address,
    Addressing,
    AnsweredByHand,
    ChatKind,
    Edited,
    Event,
    Ignored,
    Inbound,
    Migrated,
    PayloadError,
    Quoted,
    Revoked,
    Sender,
    one_line,
)
from bot.domain.plugin import Payload
from bot.domain.ports import SendRef
from channels.raw import Raw, integer, obj, objs, string
from channels.whatsapp_cloud.content import content_of, extras, type_of
from channels.whatsapp_common.content import SENT_TOGETHER

_WAMID = re.compile(r"[!-~]{1,500}")
_PHONE = re.compile(r"\+?([0-9]{5,20})")
_ORNAMENTS = re.compile(r"[ ().-]")
_USER = re.compile(r"[!-*,-~][!-~]{0,499}")
"""A person's id within a business, which begins like no phone number."""
_UNNAMED = "M0"
"""Meta's id of a message that it does not name."""
_LONG = 4000
"""Characters; Meta's texts end at 4096, and what is longer comes in pieces."""


def request_id(number: str, wamid: str) -> str:
    """Our name for a message to this number of ours: the wamid holds the person's phone number,
    and marks that no name of ours may have. Raises PayloadError when it is none."""
    if not _WAMID.fullmatch(wamid):
        raise PayloadError("the message has no usable id")
    digest = hashlib.sha256(f"{number}\n{wamid}".encode()).hexdigest()
    return f"wac-{digest[:32]}"


_TAG = re.compile(r"ab1\.([0-9]{1,18})\.([0-9]{1,9})\.([0-9a-f]{1,10})")


def tag(ref: SendRef) -> str:
    """Our name for an attempt, which comes back in each status of its message: the part, the
    attempt, and when it began."""
    return f"ab1.{ref.part}.{ref.attempt}.{int(ref.started_at):x}"


def parse_tag(text: str) -> tuple[int, int, float]:
    """The part, the attempt and when that began; zeros for what is no tag of ours."""
    found = _TAG.fullmatch(text)
    return (int(found[1]), int(found[2]), float(int(found[3], 16))) if found else (0, 0, 0.0)


_STATES = {
    "sent": PartState.SENT,
    "delivered": PartState.DELIVERED,
    "read": PartState.READ,
    "played": PartState.READ,
    "failed": PartState.REFUSED,
}


_MEMBER = ("recipient_participant_id", "recipient_participant_user_id")
"""In a status: the one of a group whom it is about."""


def status_of(raw: Raw, text: str) -> Payload:
    """The status of a message of ours. One of a kind that we do not know is kept, and proves all
    the same that the message was taken; so does a failure that is one member's of a group, whom
    no second message to all would help."""
    wamid, named = string(raw, "id"), one_line(string(raw, "status"), 32)
    if not _WAMID.fullmatch(wamid):
        return Payload(text, (Ignored("a status that names no message"),))
    state = _STATES.get(named)
    member = any(string(raw, key) for key in _MEMBER)
    part, attempt, began = parse_tag(string(raw, "biz_opaque_callback_data"))
    errors = objs(raw, "errors") or [obj(raw, "errors")]  # A list, by Meta's description.
    codes = [_digits(error, "code") for error in errors]
    code = next((c for c in codes if re.fullmatch("[0-9]{1,9}", c)), "")
    if member and state is PartState.REFUSED:
        taken = DeliveryStatus(wamid, PartState.SENT, "sent", part, attempt, began=began)
        return Payload(text, (Ignored(f"failed for one of a group: {code}"),), status=taken)
    status = DeliveryStatus(wamid, state, named, part, attempt, code, began)
    if state is None:
        return Payload(text, (Ignored(f"unknown status: {named}"),), status=status)
    return Payload(text, status=status)


def phone(raw: Raw, key: str) -> str:
    """A phone number as `+` and digits; empty for anything else."""
    found = _PHONE.fullmatch(_ORNAMENTS.sub("", _digits(raw, key)))
    return f"+{found[1]}" if found else ""


def user_id(raw: Raw, key: str) -> str:
    """A person's id within a business; empty for anything else."""
    value = string(raw, key)
    return value if _USER.fullmatch(value) and not value.isdigit() else ""


def _digits(raw: Raw, key: str) -> str:
    number = integer(raw, key)
    return string(raw, key) if number is None else str(number)


@dataclass(frozen=True, slots=True)
class Receiver:
    """The number of ours that messages came to, by its id and as people see it, and the contacts
    that came along, by each of their names."""

    number: str
    shown: str = ""
    contacts: Mapping[str, Raw] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Raw, numbers: Collection[str]) -> Receiver | None:
        """The number that a change names, or the only one there is."""
        metadata = obj(value, "metadata")
        only = next(iter(numbers)) if len(numbers) == 1 else ""
        number = _digits(metadata, "phone_number_id") or only
        contacts = objs(value, "contacts")
        by_name = {name: c for c in reversed(contacts) for name in _names(c, "wa_id", "user_id")}
        return cls(number, phone(metadata, "display_phone_number"), by_name) if number else None

    def contact_of(self, message: Raw) -> Raw:
        """The contact that a message is from; an empty one where none came along."""
        names = _names(message, "from", "from_user_id")
        return next((self.contacts[name] for name in names if name in self.contacts), {})


def _names(raw: Raw, number: str, user: str) -> list[str]:
    found = phone(raw, number), user_id(raw, number), user_id(raw, user)
    return [name for name in found if name]


def events_of(message: Raw, receiver: Receiver) -> tuple[Event, ...]:
    """The events of one message. Raises PayloadError when it can't be named, says nothing that
    can be read, or is from nobody."""
    kind = type_of(message)
    if kind == "system":
        return _moves(message)
    if rule := _UNANSWERED.get(kind):
        return (Ignored(f"{kind}: {rule}"),)
    if receiver.shown and phone(message, "from") == receiver.shown:
        return (Ignored("our own message"),)
    if kind in ("edit", "revoke"):
        return (_change(message, kind, receiver),)
    return (_inbound(message, string(message, "id"), message, receiver),)


def answer_of(echo: Raw) -> Event:
    """A message that a person of ours wrote with the WhatsApp Business app. Raises PayloadError
    for a text without words."""
    kind = type_of(echo)
    if kind in _NO_ANSWERS:
        return Ignored(f"by hand, {kind}: it answers nothing")
    wamid, to, at = string(echo, "id"), _names(echo, "to", "to_user_id"), _written_at(echo)
    if not _WAMID.fullmatch(wamid) or not to or at is None:
        return Ignored("by hand: it does not say to whom, or when")
    return AnsweredByHand(Address(to[0]), content_of(echo).text, wamid, at, tuple(to))


_NO_ANSWERS = frozenset({"reaction", "edit", "revoke", "system"})

_UNANSWERED = {
    "reaction": "reactions are not answered",
    "request_welcome": "nothing was written yet",
}


def _change(message: Raw, kind: str, receiver: Receiver) -> Event:
    """A person changed or deleted what they wrote; each such message names the first one."""
    raw, at = obj(message, kind), _written_at(message) or 0.0
    first = string(raw, "original_message_id")
    if kind == "revoke":
        name = request_id(receiver.number, first)
        author = _Author.of(message, receiver)
        return Revoked(author.address, name, at, author.chat_kind)
    return Edited(_inbound(obj(raw, "message"), first, message, receiver), at)


def _inbound(said: Raw, wamid: str, message: Raw, receiver: Receiver) -> Inbound:
    """The words of a message, which are in it or in a message within it."""
    name, author = request_id(receiver.number, wamid), _Author.of(message, receiver)
    content = content_of(said)
    context = obj(said, "context")
    forwarded = any(context.get(flag) is True for flag in ("forwarded", "frequently_forwarded"))
    quoted = _quoted(context, receiver)
    return Inbound(
        request_id=name,
        address=author.address,
        chat_kind=author.chat_kind,
        kind=content.kind,
        text=content.text,
        sender=author.sender,
        provider_id=wamid,
        addressing=_addressing(said, author, quoted, receiver),
        sent_at=_written_at(message),
        attachments=content.attachments,
        quoted=quoted,
        quoted_request="" if quoted is None else request_id(receiver.number, quoted.provider_id),
        goes_on=forwarded or content.kind in SENT_TOGETHER or len(content.text) >= _LONG,
        forwarded_from="somebody" if forwarded else "",
        button=content.button,
        aliases=author.aliases,
        person="" if author.group else author.user,
        extra=extras(said),
    )


@dataclass(frozen=True, slots=True)
class _Author:
    """The author of a message: their phone number and their id, of which one may be missing, and
    the group that it was written in, if any."""

    phone: str
    user: str
    group: str
    name: str
    username: str

    @classmethod
    def of(cls, message: Raw, receiver: Receiver) -> _Author:
        """Raises PayloadError for a message from nobody."""
        contact = receiver.contact_of(message)
        number = phone(message, "from") or phone(contact, "wa_id")
        user = next(iter(n for n in _names(message, "from", "from_user_id") if n != number), "")
        user = user or user_id(contact, "user_id")
        if not (number or user):
            raise PayloadError("the message is from nobody")
        profile = obj(contact, "profile")
        group = string(message, "group_id")
        if group and not _USER.fullmatch(group):
            raise PayloadError("the group has no usable id")
        return cls(number, user, group, string(profile, "name"), string(profile, "username"))

    @property
    def address(self) -> Address:
        return Address(self.group or self.phone or self.user)

    @property
    def chat_kind(self) -> ChatKind:
        return ChatKind.GROUP if self.group else ChatKind.PRIVATE

    @property
    def aliases(self) -> tuple[str, ...]:
        return () if self.group else tuple(name for name in (self.user, self.phone) if name)

    @property
    def sender(self) -> Sender:
        return Sender(self.user or self.phone, self.name, self.username)


def _quoted(context: Raw, receiver: Receiver) -> Quoted | None:
    wamid = string(context, "id")
    if not _WAMID.fullmatch(wamid) or wamid == _UNNAMED:
        return None
    ours = bool(receiver.shown) and phone(context, "from") == receiver.shown
    return Quoted(wamid, from_us=ours)


def _addressing(
    said: Raw, author: _Author, quoted: Quoted | None, receiver: Receiver
) -> Addressing:
    """In a group a message concerns us that answers one of ours or mentions our number."""
    if not author.group:
        return Addressing.PRIVATE
    if quoted is not None and quoted.from_us:
        return Addressing.REPLY
    named = receiver.shown and f"@{receiver.shown.removeprefix('+')}" in string(
        obj(said, "text"), "body"
    )
    return Addressing.MENTION if named else Addressing.NOT_US


def _written_at(message: Raw) -> float | None:
    """Epoch seconds, which Meta writes as a string."""
    digits = _digits(message, "timestamp")
    at = int(digits) if re.fullmatch("[0-9]{1,12}", digits) else 0
    return float(at) if at else None


_MOVES = frozenset({"user_changed_number", "customer_changed_number", "user_changed_user_id"})


def _moves(message: Raw) -> tuple[Event, ...]:
    """A person has a new number, or a new id: their chat goes on under both of the new names, at
    the number where one is known, and who writes from a number that was left is another person."""
    said = obj(message, "system")
    kind = one_line(string(said, "type"), 40)
    number = phone(message, "from") or phone(said, "customer")
    old = (user_id(said, "previous_user_id"), user_id(message, "from_user_id"), number)
    kept = number if kind == "user_changed_user_id" else ""
    new = (user_id(said, "user_id"), phone(said, "wa_id") or phone(said, "new_wa_id") or kept)
    moves = [Migrated(Address(a), Address(b)) for b in new for a in old if a and b and a != b]
    if kind not in _MOVES or not moves:
        return (Ignored(f"system message: {kind or 'unknown'}"),)
    if number and number not in new:
        moves[-1] = replace(moves[-1], left=True)
    return tuple(moves)
