"""The inbox: chats that want a person, a chat as whoever answers it needs it, and its acts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.domain.concern import Concern
from bot.domain.ending import Ending
from bot.domain.ports import OutsideWindow
from bot.domain.run import Run, RunState
from bot.leases.runtime import Runtime
from bot.operations import runs as run_acts
from bot.operations.actions import NOT_CONFIGURED, Acted, Operator, Result, Subject
from bot.operations.chats import cannot_write
from bot.operations.reports.phrases import counted
from storage import audit_log, chats, runs
from storage.operators import hand_replies, notes, presence
from storage.operators.notes import Note
from storage.statements import clock
from storage.statements.tx import Tx
from storage.views import chats as chat_views
from storage.views import handoffs
from storage.views import runs as run_views
from storage.views.chats import ChatLine, HeardLately
from storage.views.concerns import Mark, concerns_of, count_concerns, with_concern
from storage.views.conversation import Before, Heard, Said, conversation

TALK = 50
"""Lines of a conversation that are shown at once."""
_NOTES = 50
_RUNS = 20


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a chat in the list: its first concern, and its mark among those."""

    concern: Concern
    mark: Mark


@dataclass(frozen=True, slots=True)
class Wanting:
    """A chat that needs a person: the reasons in their order, each since when (epoch seconds)."""

    line: ChatLine
    concerns: Mapping[Concern, float]


@dataclass(frozen=True, slots=True)
class InboxPage:
    """A page of the inbox at the moment `now`. `more` is where the next page goes on, None if
    there is none."""

    now: float
    chats: Sequence[Wanting]
    more: Cursor | None
    counts: Mapping[Concern, int]


def inbox_page(tx: Tx, only: Concern | None, after: Cursor | None, limit: int) -> InboxPage:
    """Chats that need a person, each listed once, under its first reason; within a reason, the
    longest wait comes first. With `only`, the chats of that reason."""
    found: list[tuple[Cursor, Mapping[Concern, float]]] = []
    for concern in Concern if only is None else (only,):
        if after is None or concern.rank >= after.concern.rank:
            start = after.mark if after is not None and concern is after.concern else None
            listed = _of_concern(tx, concern, start, limit + 1 - len(found), every=only is not None)
            found += listed
        if len(found) > limit:
            break
    shown = found[:limit]
    ids = [cursor.mark.chat for cursor, _ in shown]
    lines = chat_views.chats_of(tx, ids)
    return InboxPage(
        clock.read(tx),
        [Wanting(lines[c.mark.chat], why) for c, why in shown if c.mark.chat in lines],
        shown[-1][0] if len(found) > limit else None,
        count_concerns(tx),
    )


def _of_concern(
    tx: Tx, concern: Concern, after: Mark | None, wanted: int, *, every: bool
) -> Sequence[tuple[Cursor, Mapping[Concern, float]]]:
    """The next `wanted` chats of one concern, without those that have an earlier concern as well,
    unless `every`."""
    found: list[tuple[Cursor, Mapping[Concern, float]]] = []
    while len(found) < wanted:
        marks = with_concern(tx, concern, after, wanted)
        reasons = concerns_of(tx, [mark.chat for mark in marks])
        for mark in marks:
            why = reasons[mark.chat]
            if why and (every or next(iter(why)) is concern):
                found.append((Cursor(concern, mark), why))
        if len(marks) < wanted:
            break
        after = marks[-1]
    return found[:wanted]


@dataclass(frozen=True, slots=True)
class LatePage:
    """Chats by their last message, with what is wanted there, at the moment `now`."""

    now: float
    chats: Sequence[Wanting]
    more: int | None


def heard_page(tx: Tx, before_message: int | None, limit: int) -> LatePage:
    """The chats that were heard last, whether or not they want a person."""
    found: HeardLately = chat_views.heard_lately(tx, before_message, limit)
    reasons = concerns_of(tx, found.chats)
    lines = chat_views.chats_of(tx, found.chats)
    listed = [Wanting(lines[chat], reasons[chat]) for chat in found.chats if chat in lines]
    return LatePage(clock.read(tx), listed, found.more)


@dataclass(frozen=True, slots=True)
class FreeText:
    """The window of a chat: until when its platform takes free text (epoch seconds; None: always),
    whether that is over, and what leaves then."""

    until: float | None
    closed: bool
    outside: OutsideWindow


@dataclass(frozen=True, slots=True)
class OpenChat:
    """A chat as whoever answers it sees it, at the moment `now`.

    `refusal` says why nothing can be written, empty when it can; `asked` is the reason that an
    agent gave; `last_said` is what a reply names as read; `others` look at it too. `older` is where
    the lines before `talk` are, None at the beginning.
    """

    now: float
    line: ChatLine
    concerns: Mapping[Concern, float]
    asked: str
    paused: bool
    free_text: FreeText
    refusal: str
    talk: Sequence[Heard | Said]
    older: Before | None
    live: Sequence[Run]
    notes: Sequence[Note]
    last_said: int
    others: Sequence[str]


def the_chat(tx: Tx, number: int) -> int | None:
    """The number of the chat that this one is, or is part of by now; None where there is none."""
    return chats.get(tx, number).id if chat_views.chats_of(tx, [number]) else None


def open_chat(
    tx: Tx, rt: Runtime, number: int, page: str = "", place: Before | None = None
) -> OpenChat | None:
    """The chat of this number, as it is on somebody's page; None where there is none."""
    known = the_chat(tx, number)
    if known is None:
        return None
    chat, now = chats.get(tx, known), clock.read(tx)
    talk = conversation(tx, chat.id, TALK, place)
    return OpenChat(
        now=now,
        line=chat_views.chats_of(tx, [chat.id])[chat.id],
        concerns=concerns_of(tx, [chat.id])[chat.id],
        asked=handoffs.reason(tx, chat.id),
        paused=chat.paused(now),
        free_text=_free_text(rt, chat, now),
        refusal=_refusal(tx, rt, chat),
        talk=talk.lines,
        older=talk.older,
        live=runs.live_in_chat(tx, chat.id),
        notes=notes.listed(tx, chat.id, _NOTES),
        last_said=hand_replies.last_said(tx, chat.id).part,
        others=presence.others(tx, chat.id, page),
    )


def _refusal(tx: Tx, rt: Runtime, chat: chats.Chat) -> str:
    """The reason for which a reply would be refused."""
    if chat.account not in rt.channels:
        return NOT_CONFIGURED
    if chat.opted_out_at is not None:
        return "the person asked for no more messages"
    return cannot_write(tx, rt, chat)


def _free_text(rt: Runtime, chat: chats.Chat, now: float) -> FreeText:
    window = rt.policy(chat.account).free_text_window
    channel = rt.channels.get(chat.account)
    outside = OutsideWindow.NOTHING if channel is None else channel.traits.outside_window
    if window is None:
        return FreeText(None, closed=False, outside=outside)
    opened = chat.last_inbound_at
    closed = rt.window_closed(chat.account, opened, now)
    return FreeText(None if opened is None else opened + window, closed, outside)


_ANSWERABLE = (Concern.ASKED, Concern.APOLOGISED, Concern.REFUSED)
"""The reasons that are over once a person was answered."""


def mark_answered(tx: Tx, rt: Runtime, by: Operator, chat: int) -> Acted:
    """Say that a person has answered all that the chat asked, in another way than by words to it:
    what waits ends as answered, and what ended without an answer counts as answered."""
    it, locked = Subject(f"chat {chat}"), chats.lock(tx, chat)
    signed = replace(by, reason=by.because("answered in another way"))
    wanted = concerns_of(tx, [locked.id])[locked.id].keys() & _ANSWERABLE
    acted = [run_acts.close(tx, rt, signed, run, Ending.ANSWERED) for run in _owed(tx, locked.id)]
    done = [one for one in acted if one.result is Result.DONE]
    if not done and not wanted:
        return it.too_late("nothing in it waits for an answer")
    chats.answered(tx, locked.id, clock.read(tx))
    audit_log.note(tx, by.name, "marked as answered", signed.reason, chat=locked.id)
    wake = tuple(dict.fromkeys(topic for one in done for topic in one.wake))
    return it.done(f"counted as answered: {counted(len(done), 'run')}", *wake)


def _owed(tx: Tx, chat: int) -> Iterator[int]:
    """The last runs of the chat that ended in want of somebody's eyes, then those that wait. One
    that is being worked on goes on."""
    for run, ending in run_views.last_ended(tx, chat, _RUNS):
        if ending.needs_eyes and ending.correctable_to(Ending.ANSWERED):
            yield run
    for live in runs.live_in_chat(tx, chat):
        if live.state is not RunState.RUNNING:
            yield live.id
