"""Commands of a person, carried out inside the transaction that records them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import assert_never

from bot.delivery import notices
from bot.delivery.finish import after_end
from bot.domain.commands import Command, CommandForm
from bot.domain.ending import Again, Cause, Close, Ending, leading_to
from bot.domain.message import ChatKind, Inbound
from bot.domain.reply import Reply
from bot.domain.run import Run, RunState
from bot.leases.runtime import Runtime
from bot.runs.create import again
from bot.texts import Text
from storage import audit_log, chats, inbox, outbox, runs
from storage.chats import Chat, requests
from storage.outbox import Notice
from storage.statements import clock
from storage.statements.tx import Tx

PERSON = "person"


@dataclass(frozen=True, slots=True)
class Handled:
    """The effects of a command besides its reply: the runs that it ended, and the text to show over
    the button that was pressed."""

    stopped: tuple[int, ...] = ()
    toast: str = ""


def subject_of(tx: Tx, chat: Chat, command: Command) -> bool:
    """Tell whether there is something that this command could act on now."""
    match command:
        case Command.STOP:
            return bool(runs.live_in_chat(tx, chat.id))
        case Command.RETRY:
            found = runs.last_ended(tx, chat.id, leading_to(Again.RETRY))
            # Of what was tried again the messages are a later run's.
            return found is not None and bool(
                inbox.of_run(tx, found.id) or runs.live_in_chat(tx, chat.id)
            )
        case Command.RESEND:
            return runs.last_ended(tx, chat.id, leading_to(Again.RESEND)) is not None
        case Command.START | Command.HELP | Command.STATUS | Command.OPT_OUT | Command.OPT_IN:
            return True
        case Command.EXPORT | Command.FORGET:
            return True
        case other:
            assert_never(other)


def run_command(tx: Tx, rt: Runtime, chat: Chat, message: Inbound, command: Command) -> Handled:
    """Carry out a command and post its reply. The chat is locked."""
    match command:
        case Command.START | Command.OPT_IN:
            again = chat.opted_out_at is not None
            chats.opt_out(tx, chat.id, out=False)
            chat = replace(chat, opted_out_at=None)
            return _answer(tx, rt, chat, message, Text.OPTED_IN if again else Text.WELCOME)
        case Command.HELP:
            by_words = _by_words(rt, chat)
            about_data = rt.terms.intake.data and chat.kind is ChatKind.PRIVATE
            said = rt.words.help(chat.language, by_words=by_words, data=about_data)
            notices.say(tx, rt, chat, Reply(said))
            return Handled()
        case Command.STATUS:
            return _status(tx, rt, chat)
        case Command.STOP:
            return _stop(tx, rt, chat, message, Text.STOPPED, Text.NOTHING_TO_STOP)
        case Command.OPT_OUT:
            outbox.drop_standalone(tx, chat.id)
            chats.opt_out(tx, chat.id, out=True)
            return _stop(tx, rt, chat, message, Text.OPTED_OUT, Text.OPTED_OUT)
        case Command.RETRY:
            return _retry(tx, rt, chat, message)
        case Command.RESEND:
            return _resend(tx, rt, chat, message)
        case Command.EXPORT | Command.FORGET:
            return _about_data(tx, rt, chat, command)
        case other:
            assert_never(other)


def _answer(
    tx: Tx, rt: Runtime, chat: Chat, message: Inbound, text: Text, **values: str | int
) -> Handled:
    """Answer with this text: over the button that was pressed, or else as a message."""
    if message.callback_id:
        return Handled(toast=rt.words.say(text, chat.language, **values))
    notices.say(tx, rt, chat, notices.plain(rt, chat, text, **values))
    return Handled()


def _status(tx: Tx, rt: Runtime, chat: Chat) -> Handled:
    live = runs.live_in_chat(tx, chat.id)
    waiting = runs.waiting_messages(tx, chat.id)
    values: dict[str, str | int] = {}
    if chat.paused(clock.read(tx)):
        text = Text.STATUS_PAUSED
    elif any(run.state in (RunState.RUNNING, RunState.READY) for run in live):
        text = Text.STATUS_WORKING
    elif waiting:
        text, values = Text.STATUS_WAITING, {"count": waiting}
    else:
        text = Text.STATUS_IDLE
    notices.say(tx, rt, chat, notices.plain(rt, chat, text, **values))
    return Handled()


def _stop(tx: Tx, rt: Runtime, chat: Chat, message: Inbound, done: Text, nothing: Text) -> Handled:
    """Withdraw the live runs of the chat: once this is committed, none of their parts becomes
    `sending`. If the stop came late (from a platform's records), runs for messages that were
    written after it go on."""
    stopped = withdraw(tx, rt, chat.id, runs.written_after(tx, chat.id, message.sent_at))
    quiet = outbox.drop_answers_alone(tx, chat.id)
    notices.say(tx, rt, chat, notices.plain(rt, chat, done if stopped or quiet else nothing))
    return Handled(stopped)


def withdraw(tx: Tx, rt: Runtime, chat: int, but: Container[int] = frozenset()) -> tuple[int, ...]:
    """Withdraw the live runs of a chat that is locked, except `but`; returns those that ended."""
    stopped = []
    for run in (live for live in runs.live_in_chat(tx, chat) if live.id not in but):
        end = Close(Ending.WITHDRAWN, Cause.STOPPED)
        if runs.end_live(tx, run.id, end):
            after_end(tx, rt, run, end, PERSON)
            stopped.append(run.id)
    return tuple(stopped)


def _subject(tx: Tx, chat: Chat, message: Inbound, ask: Again) -> Run | None:
    """The run of the button that was pressed, or else the chat's last run that can be retried or
    sent again, as `ask` says; None if there is none."""
    own = notices.pressed(message.button)
    found = runs.find(tx, own.run) if own else runs.last_ended(tx, chat.id, leading_to(ask))
    if found is not None and requests.is_confirmed(tx, chat.id, Command.FORGET):
        return None  # Its words are on their way out.
    if (
        found is None
        or found.chat != chat.id
        or found.ending not in leading_to(ask)
        or not found.messages
    ):
        return None
    return found


def _retry(tx: Tx, rt: Runtime, chat: Chat, message: Inbound) -> Handled:
    """Make one new run, however often asked, for the messages of one that was apologised for."""
    found = _subject(tx, chat, message, Again.RETRY)
    if found is None:
        return _answer(tx, rt, chat, message, Text.NOTHING_TO_RETRY)
    retried = notices.plain(rt, chat, Text.RETRIED)
    if notices.say(tx, rt, chat, retried, run=found.id, notice=Notice.RETRIED) is not None:
        again(tx, chat, found, PERSON)
        return Handled(toast=rt.words.say(Text.RETRIED, chat.language))
    busy = bool(runs.live_in_chat(tx, chat.id))
    text = Text.STATUS_WORKING if busy else Text.NOTHING_TO_RETRY
    return _answer(tx, rt, chat, message, text)


def _resend(tx: Tx, rt: Runtime, chat: Chat, message: Inbound) -> Handled:
    """Send the parts of an uncertain answer once more."""
    found = _subject(tx, chat, message, Again.RESEND)
    if found is None:
        return _answer(tx, rt, chat, message, Text.NOTHING_TO_RESEND)
    for part in outbox.of_run_any(tx, found.id):
        outbox.resend(tx, part.id, part.attempts, standalone=True)
    audit_log.note(tx, PERSON, "asked to send again", run=found.id, chat=chat.id)
    return Handled(toast=rt.words.say(Text.RESENT, chat.language))


CONFIRMED_WITHIN = 600.0
"""Seconds within which a data request has to be repeated to be confirmed."""
_ASK_BACK = {Command.EXPORT: Text.EXPORT_ASKED, Command.FORGET: Text.FORGET_ASKED}


def _about_data(tx: Tx, rt: Runtime, chat: Chat, command: Command) -> Handled:
    """Ask back once. The second time the request is confirmed, and `bot.privacy.requests` does it.
    Somebody who is to be forgotten gets no more answers to what they wrote before. In a group it is
    refused: its words do not belong to one person."""
    if chat.kind is not ChatKind.PRIVATE:
        notices.say(tx, rt, chat, notices.plain(rt, chat, Text.DATA_NOT_HERE))
        return Handled()
    confirmed = requests.ask(tx, chat.account, chat.id, command, CONFIRMED_WITHIN)
    if confirmed is None:
        notices.say(tx, rt, chat, notices.plain(rt, chat, Text.DATA_UNDER_WAY))
        return Handled()
    if not confirmed:
        word = rt.words.told(command, chat.language, by_words=_by_words(rt, chat))
        notices.say(tx, rt, chat, notices.plain(rt, chat, _ASK_BACK[command], word=word))
        return Handled()
    audit_log.note(tx, PERSON, f"asked to {command.value}", chat=chat.id)
    if command is not Command.FORGET:
        return Handled()
    outbox.drop_standalone(tx, chat.id)
    return Handled(withdraw(tx, rt, chat.id))


def _by_words(rt: Runtime, chat: Chat) -> bool:
    """Tell whether commands are named to this chat as plain words, without a slash."""
    return rt.channels[chat.account].traits.commands is CommandForm.WORDS
