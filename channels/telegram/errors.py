"""The table of outcomes: failed calls, by the fact that they prove.

Only what says so itself counts as not sent: a connection that never came about, or an
answer with a 4xx status. Everything else after the call began may have arrived.
"""

from __future__ import annotations

import re

import httpx
from telegram.error import NetworkError, TelegramError

from bot.domain.delivery import (
    ChannelDown,
    LimitOf,
    NotSent,
    Outcome,
    Refused,
    Scope,
    Sent,
    Unknown,
)
from bot.domain.errors import AnswerbackError, PollConflict, PollRefused, PollUnavailable
from bot.domain.message import clean
from channels.telegram.api import Rejected, Unreadable

TOPIC_GONE = "topic gone"
"""The `code` of a refusal that concerns the topic; the chat itself may still take it."""

NEVER_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
    UnicodeError,
)
"""Causes that come before the first byte of a request."""

_TOPIC = ("message thread not found", "topic_closed", "topic_deleted", "topic_id_invalid")

_CHAT = (
    *_TOPIC,
    "bot was blocked",
    "bot was kicked",
    "bot is not a member",
    "bot can't initiate conversation",
    "bot can't send messages to bots",
    "bots can't send messages to bots",
    "channel_private",
    "chat not found",
    "chat_admin_required",
    "chat_restricted",
    "chat_send_plain_forbidden",
    "chat_write_forbidden",
    "group chat was deactivated",
    "group chat was deleted",
    "group chat was upgraded",
    "group is deactivated",
    "have no rights to send a message",
    "input_user_deactivated",
    "need administrator rights",
    "not enough rights to send text messages",
    "peer_id_invalid",
    "user is deactivated",
    "user not found",
    "user_is_blocked",
)
"""Descriptions (in any case) after which nothing reaches the chat until something changes."""

_EVERYWHERE = frozenset({"getMe", "getUpdates", "sendMessage"})

WEBHOOK_IS_SET = (
    "a webhook is set for this bot, so Telegram gives no updates to polling: "
    "run `answerback webhook delete`, or set TELEGRAM_MODE=webhook"
)
ASK_BOTFATHER = "ask @BotFather for it (/mybots, API Token), set TELEGRAM_BOT_TOKEN and restart"
SOMEBODY_ELSE_POLLS = (
    "another program polls with this bot's token and takes its updates: stop it; "
    "processes of Answerback on one database take turns by themselves"
)

_TOKEN = re.compile(r"[0-9]{3,}:[A-Za-z0-9_-]{8,}")


class TelegramUnavailable(PollUnavailable):
    """The Bot API can't be reached or fails; ask again after `retry_after` seconds."""


class TelegramTokenInvalid(PollRefused):
    """The bot's token is not valid (any more): only a new one helps."""


class TelegramConflict(PollConflict):
    """Another poller, or a webhook, takes this bot's updates."""


class TelegramRefused(PollRefused):
    """The Bot API refuses our request; asking again changes nothing."""


class TelegramMethodUnknown(TelegramRefused):
    """The server at TELEGRAM_API_URL lacks the method that we call."""


def outcome_of(error: BaseException) -> Outcome:
    """The outcome of a failed send. Reasons hold no token and no text of a message."""
    match error:
        case Rejected():
            return _rejected(error)
        case Unreadable():
            if error.carried_out:
                return Sent("")
            return Unknown("a success that is not the Bot API's")
        case NetworkError() if isinstance(error.__cause__, NEVER_SENT):
            return NotSent(f"no connection: {type(error.__cause__).__name__}")
        case NetworkError():
            return Unknown(f"no answer: {type(error.__cause__ or error).__name__}")
        case _:
            return Unknown(type(error).__name__)


def _rejected(error: Rejected) -> Outcome:
    reason, code = reason_of(error), str(error.status)
    match error.status:
        case 429:
            return NotSent("too many requests", code, error.retry_after, LimitOf.UNTOLD)
        case 400 if error.moved_to is not None:
            return NotSent(reason, code, moved_to=str(error.moved_to))
        case 400 if _says(error, _TOPIC):
            return Refused(Scope.CHAT, reason, TOPIC_GONE)
        case 400 if not _says(error, _CHAT):
            return Refused(Scope.PAYLOAD, reason, code)
        case 400 | 403:
            return Refused(Scope.CHAT, reason, code)
        case 401 | 404:
            return ChannelDown(f"the token is refused ({reason}): {ASK_BOTFATHER}", code)
        case 413 | 414:
            return Refused(Scope.PAYLOAD, reason, code)
        case status if 400 <= status < 500:
            return NotSent(reason, code, error.retry_after)
        case status:
            return Unknown(f"HTTP status {status}: {reason}", code)


def _says(error: Rejected, phrases: tuple[str, ...]) -> bool:
    said = error.description.lower()
    return any(phrase in said for phrase in phrases)


def about_entities(outcome: Refused) -> bool:
    """True when the formatting is what was refused."""
    return "entit" in outcome.reason.lower()


def reason_of(error: Rejected) -> str:
    """The description up to where Telegram begins to quote the message."""
    said = re.sub(r"^[A-Z][A-Za-z ]*: ", "", error.description)
    plain = re.split(r"[:\"\n]", _TOKEN.sub("(token)", said))[0].strip()
    return clean(plain[:120]) or "no description"


def unknown_method(error: BaseException, method: str) -> bool:
    """True when this server lacks the method. A bad token answers the same, but to every call:
    only the calls that every server has say something about the token."""
    return isinstance(error, Rejected) and error.status == 404 and method not in _EVERYWHERE


def account_error(error: TelegramError, method: str) -> AnswerbackError:
    """The error to raise for a failed call about the bot itself."""
    if isinstance(error, Rejected):
        reason = reason_of(error)
        match error.status:
            case 404 if unknown_method(error, method):
                return TelegramMethodUnknown(f"this Bot API has no {method}: {reason}")
            case 401 | 404:
                said = f"Telegram refuses the token ({reason}): {ASK_BOTFATHER}"
                return TelegramTokenInvalid(said)
            case 409:
                webhook = "webhook" in reason.lower()
                advice = WEBHOOK_IS_SET if webhook else SOMEBODY_ELSE_POLLS
                return TelegramConflict(f"{advice} (it says: {reason})")
            case status if 400 <= status < 500 and status != 429:
                return TelegramRefused(reason)
            case _:
                return TelegramUnavailable(reason, error.retry_after)
    cause = error.__cause__ or error
    return TelegramUnavailable(f"the Bot API does not answer: {type(cause).__name__}")
