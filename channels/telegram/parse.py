"""Parsing a Telegram update into events. Pure. It works on the raw JSON, so that no message is lost
for a field that a library insists on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

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
    Sender,
    clean,
)
from channels.raw import Raw, flag, integer, joined, obj, objs, string, timestamp
from channels.telegram.content import Entity, content_of, entities, name_of
from channels.text import is_blank, utf16_len

ALLOWED_UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")
"""The kinds we ask Telegram for; the channel adds posts when they are to be answered."""

CHANNEL_UPDATES = ("channel_post", "edited_channel_post")

UNSERVED_UPDATES = {
    "business_connection": "business accounts are not served",
    "business_message": "business accounts are not served",
    "edited_business_message": "business accounts are not served",
    "deleted_business_messages": "business accounts are not served",
    "guest_message": "chats that the bot is not in are not served",
    "message_reaction": "reactions are not answered",
    "message_reaction_count": "reactions are not answered",
    "inline_query": "inline mode is not served",
    "chosen_inline_result": "inline mode is not served",
    "shipping_query": "payments are not served",
    "pre_checkout_query": "payments are not served",
    "purchased_paid_media": "payments are not served",
    "poll": "the state of a poll is not a message",
    "poll_answer": "the state of a poll is not a message",
    "chat_member": "other members are not our concern",
    "chat_join_request": "join requests are for administrators",
    "chat_boost": "boosts are not answered",
    "removed_chat_boost": "boosts are not answered",
    "managed_bot": "managed bots are not served",
}

SERVICE = frozenset({
    "boost_added", "channel_chat_created", "chat_background_set", "chat_owner_changed",
    "chat_owner_left", "checklist_tasks_added", "checklist_tasks_done", "connected_website",
    "delete_chat_photo", "direct_message_price_changed", "forum_topic_closed",
    "forum_topic_created", "forum_topic_edited", "forum_topic_reopened",
    "general_forum_topic_hidden", "general_forum_topic_unhidden", "gift", "gift_upgrade_sent",
    "giveaway_completed", "giveaway_created", "group_chat_created", "left_chat_member",
    "managed_bot_created", "message_auto_delete_timer_changed", "new_chat_members",
    "new_chat_photo", "new_chat_title", "paid_message_price_changed", "passport_data",
    "pinned_message", "poll_option_added", "poll_option_deleted", "proximity_alert_triggered",
    "refunded_payment", "successful_payment", "suggested_post_approval_failed",
    "suggested_post_approved", "suggested_post_declined", "suggested_post_paid",
    "suggested_post_refunded", "supergroup_chat_created", "unique_gift", "video_chat_ended",
    "video_chat_participants_invited", "video_chat_scheduled", "video_chat_started",
    "write_access_allowed",
})  # fmt: skip
"""Fields of messages that tell what happened in a chat: nobody said anything to the bot."""


LIMITS = {"text": 4096, "caption": 1024}
"""UTF-16 units; clients cut what is longer at its last good place, never before half of it."""


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """Our bot: the numeric id, and the username without `@` (may be empty)."""

    id: int
    username: str


@dataclass(frozen=True, slots=True)
class Addressed:
    """A message's relation to us; `command` is the bare lower-case name."""

    how: Addressing
    command: str = ""
    args: str = ""


def addressed(message: Raw, kind: ChatKind, me: BotIdentity) -> Addressed:
    """Find how a message concerns us, and its command.

    In a group only a mention, a reply or `/command@us` does; a bare command there may be meant
    for any bot and counts only as a reply. A command that names another bot concerns that bot
    everywhere.
    """
    marked = list(entities(message))
    first = next((e for e in marked if e.at == 0 and e.type == "bot_command"), None)
    if first is None:
        return Addressed(_how(message, kind, me, marked))
    command, _, named = first.text.removeprefix("/").lower().partition("@")
    args = "" if is_blank(first.rest) else first.rest.strip()
    if named and not _is(named, me):
        return Addressed(Addressing.OTHER_BOT, command, args)
    if named and kind is ChatKind.GROUP:
        return Addressed(Addressing.COMMAND, command, args)
    return Addressed(_how(message, kind, me, marked), command, args)


def _how(message: Raw, kind: ChatKind, me: BotIdentity, marked: list[Entity]) -> Addressing:
    if kind is not ChatKind.GROUP:
        return Addressing.PRIVATE
    if any(_mentions(entity, me) for entity in marked):
        return Addressing.MENTION
    if answers_us(message, me):
        return Addressing.REPLY
    return Addressing.NOT_US


def _mentions(entity: Entity, me: BotIdentity) -> bool:
    match entity.type:
        case "text_mention":
            return entity.user_id == me.id
        case "mention":
            return _is(entity.text.removeprefix("@"), me)
        case "bot_command":
            return _is(entity.text.partition("@")[2], me)
        case _:
            return False


def _is(name: str, me: BotIdentity) -> bool:
    return bool(name) and name.lower() == me.username.lower()


def answers_us(message: Raw, me: BotIdentity) -> bool:
    """True for a reply to a message of ours. In a topic every message seems to reply to
    the one that opened it; that is no reply."""
    replied = obj(message, "reply_to_message")
    if replied:
        author = integer(obj(replied, "from"), "id")
        return author == me.id and "forum_topic_created" not in replied
    origin = obj(obj(message, "external_reply"), "origin")
    return integer(obj(origin, "sender_user"), "id") == me.id


_KINDS = {
    "private": ChatKind.PRIVATE,
    "group": ChatKind.GROUP,
    "supergroup": ChatKind.GROUP,
    "channel": ChatKind.BROADCAST,
}


def chat_id(chat: Raw) -> int:
    """The id of a chat. Raises PayloadError: without it nobody can be answered."""
    number = integer(chat, "id")
    if number is None:
        raise PayloadError("no chat id")
    return number


def chat_kind(chat: Raw) -> ChatKind:
    """The kind that the chat names; an unknown one is told by the sign of its id."""
    known = _KINDS.get(string(chat, "type"))
    if known is not None:
        return known
    return ChatKind.PRIVATE if chat_id(chat) > 0 else ChatKind.GROUP


def address_of(message: Raw) -> Address:
    """The chat and its topic. Replies outside forums carry a thread id that is no topic."""
    thread = integer(message, "message_thread_id")
    topic = str(thread) if thread is not None and flag(message, "is_topic_message") else ""
    return Address(str(chat_id(obj(message, "chat"))), topic)


def user(raw: Raw) -> Sender:
    """A Telegram user as an author."""
    return Sender(
        id=str(integer(raw, "id") or ""),
        name=name_of(raw),
        username=string(raw, "username"),
        language=string(raw, "language_code"),
        is_bot=flag(raw, "is_bot"),
    )


def sender_of(message: Raw) -> Sender:
    """The author of a message. Somebody who writes as a group or channel (an anonymous
    administrator, say) is a person with that chat's id: the bot in `from` is only a stand-in."""
    chat = obj(message, "sender_chat")
    if not chat and not obj(message, "from"):
        chat = obj(message, "chat")
    if not chat:
        return user(obj(message, "from"))
    name = joined(name_of(chat), string(message, "author_signature"), by=" · ")
    return Sender(str(integer(chat, "id") or ""), name, string(chat, "username"))


def forwarded_from(message: Raw) -> str:
    """The name of the original author, `?` when Telegram hides it, empty if not forwarded."""
    origin = obj(message, "forward_origin")
    if not origin:
        return ""
    for key in ("sender_user", "sender_chat", "chat"):
        if name := name_of(obj(origin, key)):
            return name
    return string(origin, "sender_user_name") or "?"


def parse(
    update: Mapping[str, object], me: BotIdentity, *, channel_posts: bool = False
) -> tuple[Event, ...]:
    """The events of an update. Raises PayloadError when it can't be told from whom it is or
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
    if integer(obj(message, "from"), "id") == me.id:
        return Ignored("our own message")
    service = sorted(key for key in message if key in SERVICE)
    if service:
        return Ignored(f"service message: {service[0]}")
    if flag(obj(message, "chat"), "is_direct_messages"):
        return Ignored("direct messages of a channel are not served")
    inbound = _inbound(message, me)
    if edited:
        at = timestamp(message, "edit_date") or timestamp(message, "date") or 0.0
        return Edited(inbound, at)
    return inbound


def _migrated(message: Raw) -> Migrated | None:
    """Both chats tell of a migration, in any order."""
    new, old = integer(message, "migrate_to_chat_id"), integer(message, "migrate_from_chat_id")
    if new is None and old is None:
        return None
    here = Address(str(chat_id(obj(message, "chat"))))
    if new is not None:
        return Migrated(old=here, new=Address(str(new)))
    return Migrated(old=Address(str(old)), new=here)


def _inbound(message: Raw, me: BotIdentity) -> Inbound:
    chat = obj(message, "chat")
    number = integer(message, "message_id")
    if number is None:
        raise PayloadError("no message id")
    kind = chat_kind(chat)
    how = addressed(message, kind, me)
    content, forwarded = content_of(message), forwarded_from(message)
    return Inbound(
        request_id=f"tg-{chat_id(chat)}-{number}",
        address=address_of(message),
        chat_kind=kind,
        kind=content.kind,
        text=content.text,
        sender=sender_of(message),
        provider_id=str(number),
        addressing=how.how,
        sent_at=timestamp(message, "date"),
        chat_name=name_of(chat),
        attachments=content.attachments,
        quoted=_quoted(message, me),
        command=how.command,
        command_args=how.args,
        album=string(message, "media_group_id"),
        goes_on=bool(forwarded) or _may_be_cut(message),
        forwarded_from=forwarded,
        extra={"forum": "yes"} if flag(chat, "is_forum") else {},
    )


def _may_be_cut(message: Raw) -> bool:
    return any(utf16_len(string(message, key)) > limit // 2 for key, limit in LIMITS.items())


def _quoted(message: Raw, me: BotIdentity) -> Quoted | None:
    replied = obj(message, "reply_to_message")
    if "forum_topic_created" in replied:
        return None
    other = obj(message, "external_reply")
    source = replied or other
    selected = string(obj(message, "quote"), "text")
    if not source:
        return Quoted("", selected) if selected else None
    number = integer(source, "message_id")
    text = selected or content_of(source).text
    return Quoted(str(number) if number is not None else "", text, answers_us(message, me))


def _press(query: Raw) -> Event:
    message = obj(query, "message")
    if not message:
        return Ignored("a button under a message that was sent through inline mode")
    number, name = integer(message, "message_id"), string(query, "id")
    if number is None or not name:
        raise PayloadError("a button press without its message or id")
    request_id = f"tgcb-{name}"
    if not REQUEST_ID.fullmatch(request_id):
        request_id = f"tgcb-{hashlib.sha256(name.encode()).hexdigest()}"
    chat = obj(message, "chat")
    kind = chat_kind(chat)
    data = string(query, "data")
    shown = content_of(message).text if timestamp(message, "date") else ""
    return Inbound(
        request_id=request_id,
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


def _label(message: Raw, data: str) -> str:
    keyboard = obj(message, "reply_markup").get("inline_keyboard")
    for row in keyboard if isinstance(keyboard, list) else []:
        for button in objs({"row": row}, "row"):
            if data and string(button, "callback_data") == data:
                return string(button, "text")
    return ""


_REACHED = ("creator", "administrator", "member")


def _membership(change: Raw, me: BotIdentity) -> Event:
    member = obj(change, "new_chat_member")
    who = integer(obj(member, "user"), "id")
    if who is not None and who != me.id:
        return Ignored("another member's status")
    chat = obj(change, "chat")
    status = string(member, "status")
    muted = status == "restricted" and member.get("can_send_messages") is False
    inside = status in _REACHED or (status == "restricted" and flag(member, "is_member"))
    private = chat_kind(chat) is ChatKind.PRIVATE
    if muted and inside:
        reason = "the bot may not write here"
    elif inside:
        reason = "unblocked by the person" if private else "the bot is a member"
    else:
        reason = "blocked by the person" if private else f"the bot is out: {status or 'unknown'}"
    at = timestamp(change, "date")
    return Membership(Address(str(chat_id(chat))), inside and not muted, reason, at)
