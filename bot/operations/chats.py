"""Acts of an operator on chats and on single messages; the rules are those of `operate`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bot.delivery import notices
from bot.delivery.finish import after_end
from bot.delivery.outcome import reconsider
from bot.domain.delivery import PartState
from bot.domain.ending import Cause, Close, Ending
from bot.domain.reply import PartKind, Reply
from bot.domain.run import RunState
from bot.leases.runtime import Runtime
from bot.operations.actions import NOT_CONFIGURED, Acted, Operator, Result
from bot.operations.runs import cannot_write, too_old
from storage import audit_log, chats, inbox, outbox, reminders, replies, runs, steps
from storage.chats import Chat
from storage.engine import clock
from storage.engine.tx import Tx
from storage.notify import READY, part_topic, stop_topic
from storage.outbox import Address, Attempt, Part
from storage.views.chats import LastIds, last_ids


def _done(chat: int, said: str, *wake: str) -> Acted:
    return Acted(f"chat {chat}", Result.DONE, said, wake)


def _refused(chat: int, said: str) -> Acted:
    return Acted(f"chat {chat}", Result.REFUSED, said)


def pause(tx: Tx, by: Operator, chat: int, seconds: float | None) -> Acted:
    """The agent answers nothing in this chat for so long, or until it is resumed; what comes
    is recorded and waits. A turn that runs now ends by itself and its answer waits."""
    locked = chats.lock(tx, chat)
    now = clock.read(tx)
    if seconds is None and locked.paused_until is not None and locked.paused_until > now:
        return Acted(f"chat {chat}", Result.TOO_LATE, "it is paused already")
    chats.pause(tx, chat, None if seconds is None else now + seconds)
    span = "until it is resumed" if seconds is None else f"for {seconds:.0f} s"
    audit_log.note(tx, by.name, "paused", by.because(span), chat=chat)
    return _done(chat, f"paused {span}")


def resume(tx: Tx, rt: Runtime, by: Operator, chat: int, *, drop: bool) -> Acted:
    """The agent answers again: what waited is answered in order, or with `drop` cancelled."""
    chats.lock(tx, chat)
    was_paused = chats.resume(tx, chat)
    waiting = [r for r in runs.live_in_chat(tx, chat) if r.state is not RunState.RUNNING]
    if not was_paused and not waiting:
        return Acted(f"chat {chat}", Result.TOO_LATE, "it is not paused")
    dropped = 0
    for run in waiting if drop else ():
        end = Close(Ending.CANCELLED, Cause.OPERATOR, f"dropped by {by.name}")
        if runs.end_live(tx, run.id, end):
            why = by.because("dropped when its chat was resumed")
            after_end(tx, rt, run, replace(end, detail=why), by.name)
            dropped += 1
    runs.promote(tx, chat)
    said = f"{dropped} waiting run(s) cancelled" if drop else f"{len(waiting)} run(s) go on"
    audit_log.note(tx, by.name, "resumed", by.because(said), chat=chat)
    return _done(chat, f"resumed; {said}", *(stop_topic(r.id) for r in waiting if drop), READY)


def reply(tx: Tx, rt: Runtime, by: Operator, chat: int, text: str) -> Acted:
    """Write to the chat by hand. After it arrived, what the person wrote before counts as
    answered, so a waiting run of it ends without calling the agent."""
    locked = chats.lock(tx, chat)
    channel = rt.channels.get(locked.account)
    if channel is None:
        return _refused(chat, NOT_CONFIGURED)
    if locked.opted_out_at is not None:
        return _refused(chat, "the person asked for no more messages")
    if closed := cannot_write(tx, rt, locked):
        return _refused(chat, closed)
    bodies = channel.compose(Reply(text), notices.to_chat(locked))
    if not bodies:
        return _refused(chat, "nothing of this text would be visible")
    to = Address(locked.account, chat, None)
    posted = [
        outbox.post(tx, to, PartKind.OPERATOR, body, number)
        for number, body in enumerate(bodies, start=1)
    ]
    audit_log.note(tx, by.name, "replied by hand", by.because(f"part {posted[0]}"), chat=chat)
    return _done(chat, f"part {', '.join(map(str, posted))} goes out next", READY)


def may_forget(tx: Tx, chat: int) -> Acted | LastIds:
    """Up to which messages, parts and runs the words of this chat may be deleted, or why
    they can't be now."""
    if runs.live_in_chat(tx, chat) or outbox.count_unfinished(tx, chat):
        return _refused(chat, "something of it is still open; `runs close` it first")
    return last_ids(tx, chat)


ForgetPage = Callable[[Tx, int, int, int], int | None]


async def _forget_all(rt: Runtime, chat: int, page: ForgetPage, until: int) -> None:
    """Delete words page by page up to the id `until`: what comes meanwhile is not touched."""
    after: int | None = 0
    while after is not None:
        after = await rt.db.write(_forget_page, page, chat, after, until)


def _forget_page(tx: Tx, page: ForgetPage, chat: int, after: int, until: int) -> int | None:
    chats.lock(tx, chat)
    return page(tx, chat, after, until)


def forgotten(tx: Tx, by: Operator, chat: int) -> Acted:
    """The last step: the chat's own words, and the record that this was done."""
    chats.lock(tx, chat)
    chats.forget(tx, chat)
    reminders.forget(tx, chat)
    audit_log.note(tx, by.name, "forgotten", by.because("asked for"), chat=chat)
    return _done(chat, "every text of it is deleted; who, when and what became of it stay")


async def forget(rt: Runtime, by: Operator, chat: int) -> Acted:
    """Delete what was said in a chat, a bounded transaction at a time.

    Raises DatabaseUnavailable; what was deleted by then stays deleted.
    """
    may = await rt.db.read(may_forget, chat)
    if isinstance(may, Acted):
        return may
    await _forget_all(rt, chat, inbox.forget, may.message)
    await _forget_all(rt, chat, outbox.forget, may.part)
    await _forget_all(rt, chat, replies.forget, may.run)
    await _forget_all(rt, chat, steps.forget, may.run)
    return await rt.db.write(forgotten, by, chat)


def resolve(tx: Tx, rt: Runtime, by: Operator, part: int, *, arrived: bool) -> Acted:
    """Say what became of a message that may have arrived. `arrived`: it counts as sent, and
    a run that waited for this is answered; else it is sent once more, on its own row."""
    found = outbox.get(tx, part)
    assert found is not None
    chat = chats.lock(tx, found.chat)
    found = outbox.get(tx, part)
    assert found is not None
    name = f"part {part}"
    if found.state is not PartState.UNCERTAIN:
        return Acted(name, Result.TOO_LATE, f"it is {found.state.value}, not uncertain")
    if arrived:
        return _believe(tx, by, found)
    return _send_again(tx, rt, by, found, chat)


def _believe(tx: Tx, by: Operator, part: Part) -> Acted:
    receipt = f"word-of-{by.name}"
    if not outbox.believe_arrived(tx, Attempt(part.id, part.attempts), receipt):
        return Acted(f"part {part.id}", Result.TOO_LATE, "it moved on while you looked")
    _note(tx, by, part, "resolved: delivered")
    if part.run is not None:
        reconsider(tx, part.run)
    return Acted(f"part {part.id}", Result.DONE, "counts as sent", (part_topic(part.id), READY))


def _send_again(tx: Tx, rt: Runtime, by: Operator, part: Part, chat: Chat) -> Acted:
    name = f"part {part.id}"
    if closed := cannot_write(tx, rt, chat):
        return Acted(name, Result.REFUSED, closed)
    if too_old(tx, rt, [part]):
        return Acted(name, Result.REFUSED, "it is older than ANSWER_MAX_AGE; use `chats reply`")
    run = None if part.run is None else runs.find(tx, part.run)
    ended = run is None or run.ending is not None
    if not outbox.resend(tx, part.id, part.attempts, standalone=ended or part.standalone):
        return Acted(name, Result.TOO_LATE, "it moved on while you looked")
    if run is not None and not ended:
        runs.make_due(tx, run.id)
    _note(tx, by, part, "resolved: lost")
    return Acted(name, Result.DONE, "will be sent once more", (part_topic(part.id), READY))


def _note(tx: Tx, by: Operator, part: Part, what: str) -> None:
    why = f"part {part.id}" + (f": {by.reason}" if by.reason else "")
    audit_log.note(tx, by.name, what, why, run=part.run, chat=part.chat)
