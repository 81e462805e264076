"""Whether a message concerns the bot, and which command it is."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.message import Addressing, ChatKind
from channels.telegram.fields import Entity, Raw, entities, obj, whole


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """Who we are: the numeric id, and the username without `@` (may be empty)."""

    id: int
    username: str


@dataclass(frozen=True, slots=True)
class Addressed:
    """How a message concerns us; `command` is the bare lower-case name."""

    how: Addressing
    command: str = ""
    args: str = ""


def addressed(message: Raw, kind: ChatKind, me: BotIdentity) -> Addressed:
    """In a group only a mention, a reply or `/command@us` concerns us; a bare command there
    may be meant for any bot and counts only as a reply. A command that names another bot
    concerns that bot everywhere."""
    marked = list(entities(message))
    first = next((e for e in marked if e.at == 0 and e.type == "bot_command"), None)
    if first is None:
        return Addressed(_how(message, kind, me, marked))
    command, _, named = first.text.removeprefix("/").lower().partition("@")
    args = first.rest.strip()
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
    """Whether it replies to a message of ours. In a topic every message seems to reply to
    the one that opened it; that is no reply."""
    replied = obj(message, "reply_to_message")
    if replied:
        author = whole(obj(replied, "from"), "id")
        return author == me.id and "forum_topic_created" not in replied
    origin = obj(obj(message, "external_reply"), "origin")
    return whole(obj(origin, "sender_user"), "id") == me.id
