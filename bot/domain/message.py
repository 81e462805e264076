"""Inbound events: a channel's payload, parsed, before anything is decided."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from bot.domain.errors import ForOperators

REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


_CHANNEL = re.compile(r"[a-z][a-z0-9_-]{0,31}")


class ChannelName(str):
    """A platform's name, as its plug-in gives it: a small letter, then letters, digits, _ and -."""

    __slots__ = ()

    def __new__(cls, name: str) -> Self:
        if not _CHANNEL.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a channel")
        return super().__new__(cls, name)


class ChatKind(StrEnum):
    """The audience of a chat: a group is answered only when it addresses the bot."""

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
    """A file that came with a message."""

    kind: str
    """`photo`, `document`, `voice`, ...: as the platform calls it."""
    ref: str
    """The name by which the channel fetches it."""
    mime: str = ""
    """Its type, such as `image/jpeg`, if the platform told it."""
    name: str = ""
    """The name that its sender's machine gave it, if told."""
    size: int | None = None
    """Bytes; None when the platform did not say."""
    seconds: int | None = None
    """The length of a voice message, a film or a song."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that a person replied to, as far as the payload shows it."""

    provider_id: str
    """The platform's id of it, empty where it tells none."""
    text: str = ""
    """Its words, empty where nobody has them any more."""
    from_us: bool = False
    """True when the bot had said it."""


@dataclass(frozen=True, slots=True)
class Inbound:
    """One message (or button press) from a person, parsed and not yet stored.

    `request_id` is unique per account (see `request_id_*` below); `text` is what the agent
    reads, a description for things without words; `command` is the bare lower-case command
    name without slash or bot name. `album` groups the members of one media group. `goes_on`
    says that what its sender writes next may belong to it, without a common name: a text as
    long as the pieces into which clients cut, one of several forwarded messages or files.
    `sent_at` is the provider's time in epoch seconds, None when the provider tells none.
    `aliases` are further addresses of the same person (WhatsApp: phone and scoped user id), and
    `person` that of them which is the author's own, where numbers pass from one to another.
    `quoted_request` is the request id of the quoted message, should a person have written it.
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
    quoted_request: str = ""
    command: str = ""
    command_args: str = ""
    album: str = ""
    goes_on: bool = False
    forwarded_from: str = ""
    button: str = ""
    callback_id: str = ""
    aliases: tuple[str, ...] = ()
    person: str = ""
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def bundle(self) -> str:
        """Names what this message may belong to: its album, or what its sender just wrote."""
        return self.album or f"of {self.sender.id}"

    @property
    def gathers(self) -> bool:
        """Tell whether more is to be expected that belongs to it."""
        return self.goes_on or bool(self.album)


@dataclass(frozen=True, slots=True)
class Edited:
    """A person changed a message that they had sent. `edited_at` in epoch seconds."""

    message: Inbound
    edited_at: float


@dataclass(frozen=True, slots=True)
class Revoked:
    """A person deleted a message that they had sent: its words are gone with it. `at` in epoch
    seconds."""

    address: Address
    request_id: str
    at: float
    chat_kind: ChatKind = ChatKind.PRIVATE


@dataclass(frozen=True, slots=True)
class AnsweredByHand:
    """A person of ours wrote to a chat with a device of their own, beside us. `at` in epoch
    seconds; `aliases` as of a message."""

    address: Address
    text: str
    provider_id: str
    at: float
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Membership:
    """The bot was blocked, removed, or let back in. `at` in epoch seconds."""

    address: Address
    reachable: bool
    reason: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Migrated:
    """A chat goes on under another address; the conversation stays one. `left` says that the old
    address may become somebody else's."""

    old: Address
    new: Address
    left: bool = False


@dataclass(frozen=True, slots=True)
class Ignored:
    """A payload that is acknowledged and answered by nothing, by a stated rule."""

    reason: str


@dataclass(frozen=True, slots=True)
class Reported:
    """The platform's word on the account itself, for its operators: it is answered by nothing."""

    reason: str


Event = Inbound | Edited | Revoked | AnsweredByHand | Membership | Migrated | Reported | Ignored


class PayloadError(ForOperators):
    """A payload that passed verification and can't be parsed: it becomes a dead letter."""


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
LONGEST_NAME = 100
LONGEST_TITLE = 300
"""Of a place, a file, a question."""
_BRACKETS = str.maketrans("[]<>{}", "()()()")
_LIKE_BRACKETS = str.maketrans(
    "\u2045\u2046\u27e6\u27e7\u3010\u3011\u3014\u3015\u3016\u3017\u3018\u3019\u301a\u301b\uff3b\uff3d",
    "()()()()()()()()",
)
_COLONS = re.compile(
    r"\s*[:\u02d0\u02f8\u0589\u05c3\u0703-\u0709\u1361\u1365\u1366\u16ec\u17d6\u1804\u205a\u205d\u205e"
    r"\u2236\u2237\u2982\u2e2c\ua6f4\ua789\ufe13\ufe30\ufe55\uff1a]+"
)
_BARS = "| \u00a6\u01c0\u2223\u2502\u2503\u2758\uff5c"
_JOINERS = "\u200c\u200d"
"""Written in Persian, Indian scripts and emoji: they are invisible and harmless."""
_UNSEEN = {"Cf": "", **dict.fromkeys(("Cc", "Co", "Cs", "Zl", "Zp"), " ")}
"""By category, what stands for a mark that nobody sees."""
_ROLES = frozenset({"ai", "assistant", "developer", "function", "human", "system", "tool", "user"})
"""The words that a model takes for the side that speaks."""
_ROLES_IN_WORDS = ("assistant", "developer", "system")
"""Those that also count as a part of a name, such as `System note`."""
_LOOKALIKES = str.maketrans(
    "\u0430\u0435\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0455\u0456\u0475\u0501\u04bb"
    "\u03b1\u03b5\u03b9\u03bd\u03bf\u03c1\u03c4\u03c5"
    "\u1d00\u1d05\u1d07\u029c\u026a\u1d0d\u0274\u1d0f\u1d18\u0280\ua731\u1d1b\u1d1c\u1d20\u028f"
    "\u0131",
    "aemhopctysivdhaeivoptuadehimnoprstuvyi",
)
"""Cyrillic, Greek and small capital letters, small ones, that look like those of the roles."""


def clean(text: str) -> str:
    """Text that any database stores: NUL and lone surrogates become U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def one_line(text: str, longest: int = LONGEST_NAME) -> str:
    """Somebody else's words (a name, a title) as they may stand in a frame of ours, such as a
    line that begins with a name, or brackets: on one line, cut to `longest` characters, without
    what is invisible or turns the direction of writing, and without our frames' own marks."""
    shown = (
        char if category not in _UNSEEN or char in _JOINERS else _UNSEEN[category]
        for char in text[: 10 * longest].translate(_BRACKETS)
        for category in (unicodedata.category(char),)
    )
    line = " ".join("".join(shown).split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def as_name(text: str) -> str:
    """A name as it may stand before a colon: nobody else's name or role follows in it."""
    # A bar before it would make its line one that goes on.
    name = one_line(_COLONS.sub(",", text).translate(_LIKE_BRACKETS)).lstrip(_BARS)
    bare = "".join(char for char in as_seen(name) if char.isalnum())
    is_role = bare in _ROLES or any(role in bare for role in _ROLES_IN_WORDS)
    return f"{name} (a name)" if is_role else name


def as_seen(text: str) -> str:
    """Words as they are compared with ours: in small letters, each for all that look like it,
    without marks on letters and without what is invisible."""
    apart = unicodedata.normalize("NFKD", text).casefold().translate(_LOOKALIKES)
    return "".join(char for char in apart if unicodedata.category(char) not in ("Mn", "Cf"))
