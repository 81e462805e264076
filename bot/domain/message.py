"""Inbound events: a channel's payload, parsed, before anything is decided."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from bot.domain.errors import ForOperators

REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


_CHANNEL = re.compile(r"[a-z][a-z0-9_]{0,31}")


class ChannelName(str):
    """A platform's name, as its plug-in gives it: a small letter, then letters, digits and _."""

    __slots__ = ()

    def __new__(cls, name: str) -> Self:
        if not _CHANNEL.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a channel")
        return super().__new__(cls, name)


class ChatKind(StrEnum):
    """The audience of a chat; groups are answered only when they address the bot."""

    PRIVATE = "private"
    GROUP = "group"
    BROADCAST = "broadcast"


class InboundKind(StrEnum):
    """The form of a message, as the agent is told about it."""

    TEXT = "text"
    PHOTO = "photo"
    VOICE = "voice"
    AUDIO = "audio"
    VIDEO = "video"
    VIDEO_NOTE = "video_note"
    DOCUMENT = "document"
    STICKER = "sticker"
    ANIMATION = "animation"
    LOCATION = "location"
    VENUE = "venue"
    CONTACT = "contact"
    POLL = "poll"
    DICE = "dice"
    BUTTON = "button"
    RICH = "rich"
    SERVICE = "service"
    REMINDER = "reminder"
    OTHER = "other"


class Addressing(StrEnum):
    """The relation of a message to the bot; in a group only the last four are answered."""

    NOT_US = "not_us"
    OTHER_BOT = "other_bot"
    PRIVATE = "private"
    MENTION = "mention"
    REPLY = "reply"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Address:
    """A chat's address on its account.

    `chat` is the platform's own identifier, kept opaque and never normalised
    (Telegram: the decimal chat id; WhatsApp: the whole `whatsapp:...` address).
    `topic` is empty outside forum topics.
    """

    chat: str
    topic: str = ""


_NUMBER = re.compile(r"\+(\d)\d{2,}(\d{4})(?!\d)")


def shortened(text: str) -> str:
    """The text with the middle of every phone number left out: `whatsapp:+1…0022`."""
    return _NUMBER.sub(r"+\1…\2", text)


@dataclass(frozen=True, slots=True)
class Sender:
    """The author: the platform's id, a display name, a language tag if the platform told one."""

    id: str
    name: str = ""
    username: str = ""
    language: str = ""
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message. `ref` is what the channel needs to fetch it.

    `size` is in bytes and None when the platform did not say.
    """

    kind: str
    ref: str
    mime: str = ""
    name: str = ""
    size: int | None = None
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that a person replied to, as far as the payload shows it."""

    provider_id: str
    text: str = ""
    from_us: bool = False


@dataclass(frozen=True, slots=True)
class Inbound:
    """One message (or button press) from a person, parsed and not yet stored.

    `request_id` is unique per account (see `request_id_*` below); `text` is what the agent
    reads, a description for things without words; `command` is the bare lower-case command
    name without slash or bot name. `album` groups the members of one media group.
    `sent_at` is the provider's time in epoch seconds, None when the provider tells none.
    `aliases` are further addresses of the same person (WhatsApp: phone and scoped user id).
    """

    request_id: str
    address: Address
    chat_kind: ChatKind
    kind: InboundKind
    text: str
    sender: Sender
    provider_id: str
    addressing: Addressing = Addressing.PRIVATE
    sent_at: float | None = None
    chat_name: str = ""
    attachments: tuple[Attachment, ...] = ()
    quoted: Quoted | None = None
    command: str = ""
    command_args: str = ""
    album: str = ""
    forwarded_from: str = ""
    button: str = ""
    callback_id: str = ""
    aliases: tuple[str, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Edited:
    """A person changed a message that they had sent. `edited_at` in epoch seconds."""

    message: Inbound
    edited_at: float


@dataclass(frozen=True, slots=True)
class Membership:
    """The bot was blocked, removed, or let back in. `at` in epoch seconds."""

    address: Address
    reachable: bool
    reason: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Migrated:
    """A chat goes on under another address; the conversation stays one."""

    old: Address
    new: Address


@dataclass(frozen=True, slots=True)
class Ignored:
    """A payload that is acknowledged and answered by nothing, by a stated rule."""

    reason: str


Event = Inbound | Edited | Membership | Migrated | Ignored


class PayloadError(ForOperators):
    """A payload that passed verification and can't be parsed: it becomes a dead letter."""


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """Text that any database stores: NUL and lone surrogates become U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)
