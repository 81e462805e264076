"""A Telegram update into events. Pure; works on the raw JSON, so that a field which some
library insists on never costs a message."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from bot.domain.message import (
    REQUEST_ID,
    Address,
    Addressing,
    ChatKind,
    Edited,
    Event,
    Ignored,
    Inbound,
    InboundKind,
    Membership,
    Migrated,
    PayloadError,
    Quoted,
    clean,
)
from channels.telegram.addressing import BotIdentity, addressed, answers_us
from channels.telegram.content import content_of
from channels.telegram.fields import Raw, flag, moment, obj, objs, whole, words
from channels.telegram.people import (
    address_of,
    chat_id,
    chat_kind,
    forwarded_from,
    name_of,
    sender_of,
    user,
)
from channels.telegram.rules import CHANNEL_UPDATES, SERVICE, UNSERVED_UPDATES

__all__ = ["BotIdentity", "parse"]


def parse(
    update: Mapping[str, object], me: BotIdentity, *, channel_posts: bool = False
) -> tuple[Event, ...]:
    """What an update says. Raises PayloadError when it can't be told from whom it is or
    which message it is about."""
    if not isinstance(update, Mapping):
        raise PayloadError("an update is an object")
    for kind in ("message", "edited_message", *CHANNEL_UPDATES):
        if kind in update:
            if kind in CHANNEL_UPDATES and not channel_posts:
                return (Ignored("channel posts are not answered"),)
            return (_message(_object(update, kind), me, edited=kind.startswith("edited")),)
    if "callback_query" in update:
        return (_press(_object(update, "callback_query")),)
    if "my_chat_member" in update:
        return (_membership(_object(update, "my_chat_member"), me),)
    for kind, rule in UNSERVED_UPDATES.items():
        if kind in update:
            return (Ignored(f"{kind}: {rule}"),)
    unknown = ", ".join(sorted(clean(str(key)) for key in update if key != "update_id"))
    return (Ignored(f"unknown kind of update: {unknown[:80]}"),)


def _object(update: Raw, kind: str) -> Raw:
    value = update[kind]
    if not isinstance(value, Mapping):
        raise PayloadError(f"{kind} is no object")
    return value


def _message(message: Raw, me: BotIdentity, *, edited: bool) -> Event:
    moved = _migrated(message)
    if moved is not None:
        return moved
    if whole(obj(message, "from"), "id") == me.id:
        return Ignored("our own message")
    service = sorted(key for key in message if key in SERVICE)
    if service:
        return Ignored(f"service message: {service[0]}")
    if flag(obj(message, "chat"), "is_direct_messages"):
        return Ignored("direct messages of a channel are not served")
    inbound = _inbound(message, me)
    if edited:
        at = moment(message, "edit_date") or moment(message, "date") or 0.0
        return Edited(inbound, at)
    return inbound


def _migrated(message: Raw) -> Migrated | None:
    """Both chats tell of a migration, in any order."""
    new, old = whole(message, "migrate_to_chat_id"), whole(message, "migrate_from_chat_id")
    if new is None and old is None:
        return None
    here = Address(str(chat_id(obj(message, "chat"))))
    if new is not None:
        return Migrated(old=here, new=Address(str(new)))
    return Migrated(old=Address(str(old)), new=here)


def _inbound(message: Raw, me: BotIdentity) -> Inbound:
    chat = obj(message, "chat")
    number = whole(message, "message_id")
    if number is None:
        raise PayloadError("no message id")
    kind = chat_kind(chat)
    how = addressed(message, kind, me)
    content = content_of(message)
    return Inbound(
        request_id=f"tg-{chat_id(chat)}-{number}",
        address=address_of(message),
        chat_kind=kind,
        kind=content.kind,
        text=content.text,
        sender=sender_of(message),
        provider_id=str(number),
        addressing=how.how,
        sent_at=moment(message, "date"),
        chat_name=name_of(chat),
        attachments=content.attachments,
        quoted=_quoted(message, me),
        command=how.command,
        command_args=how.args,
        album=words(message, "media_group_id"),
        forwarded_from=forwarded_from(message),
        extra={"forum": "yes"} if flag(chat, "is_forum") else {},
    )


def _quoted(message: Raw, me: BotIdentity) -> Quoted | None:
    replied = obj(message, "reply_to_message")
    if "forum_topic_created" in replied:
        return None
    other = obj(message, "external_reply")
    source = replied or other
    selected = words(obj(message, "quote"), "text")
    if not source:
        return Quoted("", selected) if selected else None
    number = whole(source, "message_id")
    text = selected or content_of(source).text
    return Quoted(str(number) if number is not None else "", text, answers_us(message, me))


def _press(query: Raw) -> Event:
    message = obj(query, "message")
    if not message:
        return Ignored("a button under a message that was sent through inline mode")
    number, name = whole(message, "message_id"), words(query, "id")
    if number is None or not name:
        raise PayloadError("a button press without its message or id")
    chat = obj(message, "chat")
    kind = chat_kind(chat)
    data = words(query, "data")
    shown = content_of(message).text if moment(message, "date") else ""
    return Inbound(
        request_id=_press_id(name),
        address=address_of(message),
        chat_kind=kind,
        kind=InboundKind.BUTTON,
        text=_label(message, data) or data or "[button]",
        sender=user(obj(query, "from")),
        provider_id=str(number),
        addressing=Addressing.REPLY if kind is ChatKind.GROUP else Addressing.PRIVATE,
        chat_name=name_of(chat),
        quoted=Quoted(str(number), shown, from_us=True),
        button=data,
        callback_id=name,
    )


def _press_id(name: str) -> str:
    plain = f"tgcb-{name}"
    if REQUEST_ID.fullmatch(plain):
        return plain
    return f"tgcb-{hashlib.sha256(name.encode()).hexdigest()}"


def _label(message: Raw, data: str) -> str:
    keyboard = obj(message, "reply_markup").get("inline_keyboard")
    for row in keyboard if isinstance(keyboard, list) else []:
        for button in objs({"row": row}, "row"):
            if data and words(button, "callback_data") == data:
                return words(button, "text")
    return ""


_REACHED = ("creator", "administrator", "member")


def _membership(change: Raw, me: BotIdentity) -> Event:
    member = obj(change, "new_chat_member")
    who = whole(obj(member, "user"), "id")
    if who is not None and who != me.id:
        return Ignored("another member's status")
    chat = obj(change, "chat")
    status = words(member, "status")
    muted = status == "restricted" and member.get("can_send_messages") is False
    inside = status in _REACHED or (status == "restricted" and flag(member, "is_member"))
    private = chat_kind(chat) is ChatKind.PRIVATE
    if muted and inside:
        reason = "the bot may not write here"
    elif inside:
        reason = "unblocked by the person" if private else "the bot is a member"
    else:
        reason = "blocked by the person" if private else f"the bot is out: {status or 'unknown'}"
    at = moment(change, "date")
    return Membership(Address(str(chat_id(chat))), inside and not muted, reason, at)
