"""Who wrote, who is in the chat, and where it came from."""

from __future__ import annotations

from bot.domain.message import Address, ChatKind, PayloadError, Sender
from channels.telegram.fields import Raw, flag, joined, obj, whole, words

_KINDS = {
    "private": ChatKind.PRIVATE,
    "group": ChatKind.GROUP,
    "supergroup": ChatKind.GROUP,
    "channel": ChatKind.BROADCAST,
}


def chat_id(chat: Raw) -> int:
    """The id of a chat. Raises PayloadError: without it nobody can be answered."""
    number = whole(chat, "id")
    if number is None:
        raise PayloadError("no chat id")
    return number


def chat_kind(chat: Raw) -> ChatKind:
    """The kind that the chat names; an unknown one is told by the sign of its id."""
    known = _KINDS.get(words(chat, "type"))
    if known is not None:
        return known
    return ChatKind.PRIVATE if chat_id(chat) > 0 else ChatKind.GROUP


def address_of(message: Raw) -> Address:
    """The chat and its topic. Replies outside forums carry a thread id that is no topic."""
    thread = whole(message, "message_thread_id")
    topic = str(thread) if thread is not None and flag(message, "is_topic_message") else ""
    return Address(str(chat_id(obj(message, "chat"))), topic)


def name_of(who: Raw) -> str:
    """The display name of a user or chat."""
    full = joined(words(who, "first_name"), words(who, "last_name"))
    return full or words(who, "title") or words(who, "username")


def user(raw: Raw) -> Sender:
    """A user who did something himself."""
    return Sender(
        id=str(whole(raw, "id") or ""),
        name=name_of(raw),
        username=words(raw, "username"),
        language=words(raw, "language_code"),
        is_bot=flag(raw, "is_bot"),
    )


def sender_of(message: Raw) -> Sender:
    """The author. Who writes as a group or channel (an anonymous administrator, a channel's
    identity) is that chat and a person: the bot in `from` is only a stand-in."""
    chat = obj(message, "sender_chat")
    if not chat and not obj(message, "from"):
        chat = obj(message, "chat")
    if not chat:
        return user(obj(message, "from"))
    name = joined(name_of(chat), words(message, "author_signature"), by=" · ")
    return Sender(str(whole(chat, "id") or ""), name, words(chat, "username"))


def forwarded_from(message: Raw) -> str:
    """The name of the original author, `?` when Telegram hides it, empty if not forwarded."""
    origin = obj(message, "forward_origin")
    if not origin:
        return ""
    for key in ("sender_user", "sender_chat", "chat"):
        if name := name_of(obj(origin, key)):
            return name
    return words(origin, "sender_user_name") or "?"
