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
    """The effects of a command beside its reply: the runs that it ended, and the words that are
    shown over a pressed button."""

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
    """Say it: over the button that was pressed, else as a message."""
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
    """Withdraw what waits and what runs: no part of it becomes `sending` after this commits.
    What was written after a stop that came late (in a platform's records) goes on."""
    stopped = withdraw(tx, rt, chat.id, runs.written_after(tx, chat.id, message.sent_at))
    quiet = outbox.drop_answers_alone(tx, chat.id)
    notices.say(tx, rt, chat, notices.plain(rt, chat, done if stopped or quiet else nothing))
    return Handled(stopped)


def withdraw(tx: Tx, rt: Runtime, chat: int, but: Container[int] = frozenset()) -> tuple[int, ...]:
    """Withdraw the runs of a chat that is locked, all but some; returns those that ended by it."""
    stopped = []
    for run in (live for live in runs.live_in_chat(tx, chat) if live.id not in but):
        end = Close(Ending.WITHDRAWN, Cause.STOPPED)
        if runs.end_live(tx, run.id, end):
            after_end(tx, rt, run, end, PERSON)
            stopped.append(run.id)
    return tuple(stopped)


def _subject(tx: Tx, chat: Chat, message: Inbound, ask: Again) -> Run | None:
    """The run of the pressed button, or the chat's last one with this way on; None when it has
    none, or none any more."""
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
    """One new run for the messages of a run that was apologised for, however often asked."""
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
    """Send the parts of an uncertain answer once more, on their own rows."""
    found = _subject(tx, chat, message, Again.RESEND)
    if found is None:
        return _answer(tx, rt, chat, message, Text.NOTHING_TO_RESEND)
    for part in outbox.of_run_any(tx, found.id):
        outbox.resend(tx, part.id, part.attempts, standalone=True)
    audit_log.note(tx, PERSON, "asked to send again", run=found.id, chat=chat.id)
    return Handled(toast=rt.words.say(Text.RESENT, chat.language))


CONFIRMED_WITHIN = 600.0
"""Seconds in which a wish about one's data is said a second time."""
_ASK_BACK = {Command.EXPORT: Text.EXPORT_ASKED, Command.FORGET: Text.FORGET_ASKED}


def _about_data(tx: Tx, rt: Runtime, chat: Chat, command: Command) -> Handled:
    """Ask back once; the second time it is settled, and `bot.privacy.requests` does it. Who is to
    be forgotten gets no answer any more to what they wrote before. A group's words are not one
    person's to take along or delete."""
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
    """Tell whether the people of this chat are told words instead of slash forms."""
    return rt.channels[chat.account].traits.commands is CommandForm.WORDS
