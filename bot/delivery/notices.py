"""Notices and apologies, which Answerback writes itself, and the buttons under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.commands import Command
from bot.domain.ending import Again
from bot.domain.ports import Recipient
from bot.domain.reply import Button, PartBody, PartKind, Reply
from bot.leases.runtime import Runtime
from bot.texts import Text
from storage import outbox
from storage.chats import Chat
from storage.outbox import Notice, PartOwner
from storage.statements.tx import Tx

_PREFIX = "ab"


@dataclass(frozen=True, slots=True)
class Pressed:
    """One of our own buttons, with the run that it belongs to."""

    ask: Again
    run: int


def pressed(data: str) -> Pressed | None:
    """Our own button, or None when the data is the agent's."""
    prefix, _, rest = data.partition(":")
    ask, _, run = rest.partition(":")
    if prefix != _PREFIX or ask not in set(Again) or not run.isdecimal():
        return None
    return Pressed(Again(ask), int(run))


def to_chat(chat: Chat) -> Recipient:
    """The chat as a recipient of words that answer no message."""
    return Recipient(address=chat.address, kind=chat.kind, language=chat.language)


def say(
    tx: Tx,
    rt: Runtime,
    chat: Chat,
    reply: Reply,
    *,
    run: int | None = None,
    notice: Notice | None = None,
) -> int | None:
    """Post a notice to the chat. With `run` and `notice` it is said at most once. A chat that
    opted out is told nothing."""
    if chat.opted_out_at is not None:
        return None
    bodies = rt.channels[chat.account].compose(reply, to_chat(chat))
    if not bodies:
        return None
    to = PartOwner(chat.account, chat.id, run)
    return outbox.post(tx, to, PartKind.NOTICE, bodies[0], 1 if notice is None else notice)


def plain(rt: Runtime, chat: Chat, text: Text, **values: str | int) -> Reply:
    """One of our texts in the chat's language."""
    return Reply(rt.words.say(text, chat.language, **values))


def uncertain(rt: Runtime, chat: Chat, run: int) -> Reply:
    """The notice that part of an answer may not have arrived, with a way to get it again."""
    if rt.channels[chat.account].traits.has_buttons:
        label = rt.words.say(Text.RESEND_BUTTON, chat.language)
        return Reply(
            rt.words.say(Text.UNCERTAIN_ASK_BUTTON, chat.language),
            buttons=(Button(label, f"{_PREFIX}:{Again.RESEND}:{run}"),),
        )
    word = rt.words.word(Command.RESEND, chat.language)
    return Reply(rt.words.say(Text.UNCERTAIN_ASK, chat.language, word=word))


def apology(rt: Runtime, account: int, to: Recipient, run: int, text: str) -> Sequence[PartBody]:
    """The apology as parts, with a way to try again."""
    channel = rt.channels[account]
    if channel.traits.has_buttons:
        label = rt.words.say(Text.RETRY_BUTTON, to.language)
        reply = Reply(text, buttons=(Button(label, f"{_PREFIX}:{Again.RETRY}:{run}"),))
    else:
        word = rt.words.word(Command.RETRY, to.language)
        reply = Reply(f"{text} {rt.words.say(Text.RETRY_HINT, to.language, word=word)}")
    return channel.compose(reply, to)
