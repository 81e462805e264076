"""Commands of a person, carried out inside the transaction that records them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from bot.domain.commands import Command
from bot.domain.ending import Ending
from bot.domain.message import ChannelName, Inbound
from bot.domain.reply import Reply
from bot.domain.run import Run, RunState
from bot.flows import notices
from bot.flows.ended import after_end
from bot.flows.runtime import Runtime
from bot.texts import Text
from storage import chats, events, inbox, outbox, runs
from storage.chats import Chat
from storage.outbox import Notice
from storage.runs import NewRun
from storage.tx import Tx

PERSON = "person"


@dataclass(frozen=True, slots=True)
class Obeyed:
    """What a command did beside its reply: the runs that it ended."""

    stopped: tuple[int, ...] = ()


def subject_of(tx: Tx, chat: Chat, command: Command) -> bool:
    """Whether there is something that this command could act on now."""
    match command:
        case Command.STOP:
            return bool(runs.live_in_chat(tx, chat.id))
        case Command.RETRY:
            return runs.last_ended(tx, chat.id, (Ending.APOLOGISED, Ending.FAILED)) is not None
        case Command.RESEND:
            return runs.last_ended(tx, chat.id, (Ending.UNCERTAIN,)) is not None
        case Command.START | Command.HELP | Command.STATUS | Command.OPT_OUT | Command.OPT_IN:
            return True
        case other:
            assert_never(other)


def obey(tx: Tx, rt: Runtime, chat: Chat, message: Inbound, command: Command) -> Obeyed:
    """Carry out a command and post its reply. The chat is locked."""
    match command:
        case Command.START:
            _say(tx, rt, chat, Text.WELCOME)
        case Command.HELP:
            by_words = rt.channels[chat.account].name is ChannelName.WHATSAPP
            notices.say(tx, rt, chat, Reply(rt.words.help(chat.language, by_words=by_words)))
        case Command.STATUS:
            _status(tx, rt, chat)
        case Command.STOP:
            return _stop(tx, rt, chat, Text.STOPPED, Text.NOTHING_TO_STOP)
        case Command.OPT_OUT:
            chats.opt_out(tx, chat.id, out=True)
            return _stop(tx, rt, chat, Text.OPTED_OUT, Text.OPTED_OUT)
        case Command.OPT_IN:
            again = chat.opted_out_at is not None
            chats.opt_out(tx, chat.id, out=False)
            _say(tx, rt, chat, Text.OPTED_IN if again else Text.WELCOME)
        case Command.RETRY:
            _retry(tx, rt, chat, message)
        case Command.RESEND:
            _resend(tx, rt, chat, message)
        case other:
            assert_never(other)
    return Obeyed()


def _say(tx: Tx, rt: Runtime, chat: Chat, text: Text, **values: str | int) -> None:
    notices.say(tx, rt, chat, notices.plain(rt, chat, text, **values))


def _status(tx: Tx, rt: Runtime, chat: Chat) -> None:
    live = runs.live_in_chat(tx, chat.id)
    waiting = chats.waiting_messages(tx, chat.id)
    if any(run.state in (RunState.RUNNING, RunState.READY) for run in live):
        _say(tx, rt, chat, Text.STATUS_WORKING)
    elif waiting:
        _say(tx, rt, chat, Text.STATUS_WAITING, count=waiting)
    else:
        _say(tx, rt, chat, Text.STATUS_IDLE)


def _stop(tx: Tx, rt: Runtime, chat: Chat, done: Text, nothing: Text) -> Obeyed:
    """Withdraw what waits and what runs: no part of it becomes `sending` after this commits."""
    chats.raise_stop(tx, chat.id)
    stopped = []
    for run in runs.live_in_chat(tx, chat.id):
        if runs.end_live(tx, run.id, Ending.WITHDRAWN, "the person stopped it"):
            after_end(tx, rt, run, Ending.WITHDRAWN, "the person stopped it", PERSON)
            stopped.append(run.id)
    _say(tx, rt, chat, done if stopped else nothing)
    return Obeyed(tuple(stopped))


def _retry(tx: Tx, rt: Runtime, chat: Chat, message: Inbound) -> None:
    """One new run for the messages of a run that was apologised for, however often asked."""
    own = notices.pressed(message.button)
    endings = (Ending.APOLOGISED, Ending.FAILED)
    found = runs.find(tx, own.run) if own else runs.last_ended(tx, chat.id, endings)
    if found is None or found.chat != chat.id or found.ending not in endings:
        _say(tx, rt, chat, Text.NOTHING_TO_RETRY)
        return
    said = notices.say(
        tx,
        rt,
        chat,
        notices.plain(rt, chat, Text.RETRIED),
        run=found.id,
        notice=Notice.RETRIED,
    )
    if said is None:
        return
    again(tx, chat, found, PERSON)


def again(tx: Tx, chat: Chat, ended: Run, who: str) -> Run:
    """A new run for the messages of one that ended. The chat is locked."""
    live = runs.live_in_chat(tx, chat.id)
    messages = inbox.of_run(tx, ended.id)
    new = NewRun(
        account=chat.account,
        chat=chat.id,
        request_id=messages[0].request_id if messages else "",
        order_at=ended.created_at,
        wait=0.0,
        album="",
        stop_revision=chat.stop_revision,
    )
    run = runs.insert_run(tx, new, None, head=not live)
    runs.count_messages(tx, run.id, len(messages))
    for stored in messages:
        inbox.assign(tx, stored.id, run.id)
    events.note(tx, who, "asked for again", f"as run {run.id}", run=ended.id, chat=chat.id)
    return run


def _resend(tx: Tx, rt: Runtime, chat: Chat, message: Inbound) -> None:
    """Send the parts of an uncertain answer once more, on their own rows."""
    own = notices.pressed(message.button)
    found = runs.find(tx, own.run) if own else runs.last_ended(tx, chat.id, (Ending.UNCERTAIN,))
    if found is None or found.chat != chat.id or found.ending is not Ending.UNCERTAIN:
        _say(tx, rt, chat, Text.NOTHING_TO_RESEND)
        return
    for part in outbox.of_run_any(tx, found.id):
        outbox.resend(tx, part.id, part.attempts, loose=True)
    events.note(tx, PERSON, "asked to send again", run=found.id, chat=chat.id)
