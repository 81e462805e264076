"""Acts on chats."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.delivery import notices
from bot.delivery.finish import after_end
from bot.domain.ending import Cause, Close, Ending
from bot.domain.message import clean
from bot.domain.reply import FileOut, PartKind, Reply
from bot.domain.run import RunState
from bot.leases.runtime import Runtime
from bot.operations.actions import NOT_CONFIGURED, Acted, Operator, Subject
from bot.operations.reports.phrases import counted
from bot.privacy.forget import erase, settle_compaction
from storage import audit_log, chats, erasure, outbox, runs
from storage.chats import Chat, requests
from storage.notify import READY, chat_topic, stop_topic
from storage.operators import hand_replies, notes
from storage.outbox import PartOwner
from storage.retention import owe_compaction
from storage.statements import clock
from storage.statements.tx import Tx
from storage.views.chats import LastIds, last_ids


def pause(tx: Tx, _rt: Runtime, by: Operator, chat: int, seconds: float | None) -> Acted:
    """Keep the agent from answering in this chat for `seconds`, or until it is resumed. Messages
    that come are recorded and wait. A turn that runs now goes on, and its answer waits."""
    it, locked, now = Subject(f"chat {chat}"), chats.lock(tx, chat), clock.read(tx)
    if seconds is None and locked.paused_until is not None and locked.paused_until > now:
        return it.too_late("it is paused already")
    chats.pause(tx, locked.id, None if seconds is None else now + seconds)
    span = "until it is resumed" if seconds is None else f"for {seconds:.0f} s"
    audit_log.note(tx, by.name, "paused", by.because(span), chat=locked.id)
    return it.done(f"paused {span}")


def resume(tx: Tx, rt: Runtime, by: Operator, chat: int, *, drop: bool) -> Acted:
    """Let the agent answer again: what waited is answered in order or, with `drop`, cancelled."""
    it = Subject(f"chat {chat}")
    chat = chats.lock(tx, chat).id
    was_paused = chats.resume(tx, chat)
    waiting = [r for r in runs.live_in_chat(tx, chat) if r.state is not RunState.RUNNING]
    if not was_paused and not waiting:
        return it.too_late("it is not paused")
    dropped = 0
    for run in waiting if drop else ():
        end = Close(Ending.CANCELLED, Cause.OPERATOR, f"dropped by {by.name}")
        if runs.end_live(tx, run.id, end):
            reason = by.because("dropped when its chat was resumed")
            after_end(tx, rt, run, replace(end, detail=reason), by.name)
            dropped += 1
    runs.promote(tx, chat)
    said = (
        f"cancelled: {counted(dropped, 'waiting run')}"
        if drop
        else f"going on: {counted(len(waiting), 'run')}"
    )
    audit_log.note(tx, by.name, "resumed", by.because(said), chat=chat)
    stopped = [stop_topic(run.id) for run in waiting if drop]
    return it.done(f"resumed; {said}", *stopped, chat_topic(chat), READY)


@dataclass(frozen=True, slots=True)
class Form:
    """The form with which somebody hands in a reply. An empty one guards against nothing.

    `key` names it: the same form handed in again is the same reply. `seen` is the newest part of
    ours that its writer has read (`hand_replies.last_said`): who has said something since then
    is answered to first.
    """

    key: str = ""
    seen: int | None = None


NO_FORM = Form()


def reply(
    tx: Tx,
    rt: Runtime,
    by: Operator,
    chat: int,
    text: str,
    *,
    attached: Sequence[FileOut] = (),
    form: Form = NO_FORM,
) -> Acted:
    """Write to the chat by hand. After it arrived, what the person wrote before counts as
    answered, so a waiting run of it ends without calling the agent. Of two who write at once one
    is too late, and is told who was quicker."""
    it, locked = Subject(f"chat {chat}"), chats.lock(tx, chat)
    given, digest = Reply(text, files=tuple(attached)), _digest(text, attached)
    if (done := _handed_in(tx, it, locked.id, form, digest)) is not None:
        return done
    channel = rt.channels.get(locked.account)
    if channel is None:
        return it.refused(NOT_CONFIGURED)
    if locked.opted_out_at is not None:
        return it.refused("the person asked for no more messages")
    if closed := cannot_write(tx, rt, locked):
        return it.refused(closed)
    bodies = channel.compose(given, notices.to_chat(locked))
    if not bodies:
        return it.refused("nothing of this text would be visible")
    to = PartOwner(locked.account, locked.id, None)
    posted = [
        part
        for number, body in enumerate(bodies, start=1)
        if (part := outbox.post(tx, to, PartKind.OPERATOR, body, number)) is not None
    ]
    hand_replies.record(tx, locked.id, posted, by.name, digest, form.key)
    audit_log.note(tx, by.name, "replied by hand", by.because(f"part {posted[0]}"), chat=locked.id)
    paused = locked.paused(clock.read(tx))
    back = f"; `chats resume {chat}` gives the chat back to the agent" if paused else ""
    return it.done(f"part {', '.join(map(str, posted))} goes out next{back}", READY)


def _digest(text: str, attached: Sequence[FileOut]) -> str:
    """A hash of the text and files of a reply."""
    whole = "\0".join([text, *(f"{file.name} {file.url} {file.content}" for file in attached)])
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


def _handed_in(tx: Tx, it: Subject, chat: int, form: Form, digest: str) -> Acted | None:
    """The outcome, if this form was handed in before or its writer has not read everything; else
    None. The chat is locked."""
    known = hand_replies.under(tx, form.key) if form.key else None
    if known is not None and known.chat == chat and known.digest in ("", digest):
        return it.done(f"part {known.part} has these words already: the form was sent twice")
    if known is not None:
        other = "with other words" if known.chat == chat else f"to chat {known.chat}"
        return it.refused(f"this form was sent before, {other} (part {known.part})")
    last = hand_replies.last_said(tx, chat)
    if form.seen is not None and last.part > form.seen:
        return it.too_late(f"{last.who or 'the agent'} answered meanwhile, with part {last.part}")
    return None


def note(tx: Tx, by: Operator, chat: int, text: str, *, key: str = "") -> Acted:
    """Store a note about the chat for colleagues; it is never sent. `key` names the form with which
    it is handed in: the same form again makes no second note."""
    it, locked = Subject(f"chat {chat}"), chats.lock(tx, chat)
    said = clean(text).strip()
    if not said:
        return it.refused("a note needs words")
    if len(said) > notes.LONGEST:
        return it.refused(f"a note has at most {notes.LONGEST} characters")
    if key and (known := notes.under(tx, key)) is not None:
        if known in ((locked.id, said), (locked.id, "")):
            return it.done("it is noted already: the form was sent twice")
        return it.refused("this form was sent before, with another note")
    number = notes.add(tx, locked.id, by.name, said, key)
    audit_log.note(tx, by.name, "noted", f"note {number}", chat=locked.id)
    return it.done("noted for colleagues; nothing is sent", chat_topic(locked.id))


def cannot_write(tx: Tx, rt: Runtime, chat: Chat) -> str:
    """The reason why nothing can be written to this chat now; empty if it can."""
    if chat.silenced is not None:
        return f"nothing reaches this chat until the person writes: {chat.silenced.words}"
    closed = rt.window_closed(chat.account, chat.last_inbound_at, clock.read(tx))
    if closed and not rt.policy(chat.account).templates:
        return "the platform allows free text again only after the person has written"
    return ""


async def forget(rt: Runtime, by: Operator, chat: int) -> Acted:
    """Delete the words of a chat, in transactions of a bounded size.

    Raises DatabaseUnavailable; what was deleted by then stays deleted.
    """
    it = Subject(f"chat {chat}")
    chat = (await rt.db.read(chats.get, chat)).id

    def newest(tx: Tx) -> LastIds | None:
        """The last message, part and run: what comes meanwhile is not touched."""
        if runs.live_in_chat(tx, chat) or outbox.count_unfinished(tx, chat):
            return None
        return last_ids(tx)

    last = await rt.db.read(newest)
    if last is None:
        return it.refused("something of it is still open; `runs close` it first")
    await erase(rt, chat, last)

    def forgotten(tx: Tx) -> bool:
        locked = chats.lock(tx, chat)
        if locked.id != chat:
            return False  # It became part of another, and so did its words.
        erasure.finish(tx, chat)
        requests.forgotten_by_hand(tx, locked.account, chat, last)
        owe_compaction(tx)
        audit_log.note(tx, by.name, "forgotten", by.because("asked for"), chat=chat)
        return True

    if not await rt.db.write(forgotten):
        return await forget(rt, by, chat)
    said = "every text of it is deleted; who, when and what became of it stay"
    if await settle_compaction(rt.db):
        return it.done(said)
    return it.done(f"{said}; `answerback db compact` takes it out of the file's unused space too")
