"""Moves of a whole conversation: its window, pauses, silence, limits."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from storage import runs
from storage.chats.rows import IS_CHAT, Chat
from storage.schema.tables import chats, told
from storage.schema.tables.words import WORDS
from storage.statements.binds import CHAT_ID, MOMENT, REASON, RUN_ID, SECONDS
from storage.statements.clock import as_old, moved, now, stamped_before, waited
from storage.statements.insert import InsertOrSkip
from storage.statements.sets import Rows, among
from storage.statements.tx import Tx

_OR_NOW = sa.func.coalesce(MOMENT, now)
_heard = Rows(
    "heard",
    chat=sa.BigInteger(),
    last_inbound_at=sa.Double(),
    address=sa.Text(),
    name=sa.Text(),
    language=sa.Text(),
)
_HEARD = (
    sa.update(chats)
    .where(chats.c.id == _heard.c.chat)
    .values(
        last_inbound_at=_heard.c.last_inbound_at,
        address=_heard.c.address,
        name=_heard.c.name,
        language=_heard.c.language,
        unreachable_since=None,
        unreachable_reason=None,
    )
)


def heard(tx: Tx, now_so: Sequence[Chat]) -> None:
    """Write down what `Chat.heard` made of these chats, which are locked."""
    rows = (
        (chat.id, chat.last_inbound_at, chat.address.chat, chat.name, chat.language)
        for chat in now_so
    )
    tx.later(_HEARD, _heard.of(rows))


_last_at = chats.c.last_inbound_at
_PARK = (
    sa.update(chats)
    .where(IS_CHAT, sa.or_(_last_at.is_(None), _last_at <= sa.func.coalesce(MOMENT, _last_at)))
    .values(unreachable_since=_OR_NOW, unreachable_reason=REASON)
)
_UNPARK = sa.update(chats).where(IS_CHAT).values(unreachable_since=None, unreachable_reason=None)


def park(tx: Tx, chat: int, reason: str, at: float | None = None) -> bool:
    """Nothing reaches this chat. With `at`, the provider's time of a block: one that is older
    than the chat's last message changes nothing. Without it the evidence is a send of now."""
    return tx.execute(_PARK, {"chat_id": chat, "reason": reason, "moment": at}).rowcount == 1


def unpark(tx: Tx, chat: int) -> None:
    """The platform lets us in again."""
    tx.execute(_UNPARK, {"chat_id": chat})


_FOR_EVER = 1e12
# A handoff that is over by the time of its pause is none of the next pause.
_PAUSE = (
    sa.update(chats)
    .where(IS_CHAT)
    .values(
        paused_until=MOMENT,
        **{
            name: sa.case((chats.c.paused_until > now, chats.c[name]))
            for name in ("handoff_at", "handoff_run")
        },
    )
)
_HAND_OVER = (
    sa.update(chats)
    .where(IS_CHAT)
    .values(paused_until=_FOR_EVER, handoff_at=now, handoff_run=RUN_ID)
)
_RESUME = (
    sa.update(chats)
    .where(IS_CHAT, chats.c.paused_until > now)
    .values(paused_until=None, handoff_at=None, handoff_run=None)
)


def pause(tx: Tx, chat: int, until: float | None) -> None:
    """Stop the agent in this chat until `until` (epoch seconds; None: until resumed). The
    chat is locked; its head, if nobody works on it, goes back to the waiters."""
    tx.execute(_PAUSE, {"chat_id": chat, "moment": _FOR_EVER if until is None else until})
    runs.step_back(tx, chat)


def hand_over(tx: Tx, chat: int, run: int) -> None:
    """Pause the chat until it is resumed, because the agent of this run asked for a person. The
    chat is locked."""
    tx.execute(_HAND_OVER, {"chat_id": chat, "run_id": run})
    runs.step_back(tx, chat)


def resume(tx: Tx, chat: int) -> bool:
    """Let the agent answer again. False: the chat was not paused. The caller promotes."""
    return tx.execute(_RESUME, {"chat_id": chat}).rowcount == 1


_here, _topic = chats.alias("here"), chats.alias("topic")
# A topic that somebody is at work on is passed by: waiting for it could be for each other.
_topics = (
    sa.select(_topic.c.id)
    .join(_here, sa.and_(_topic.c.account == _here.c.account, _topic.c.address == _here.c.address))
    .where(_here.c.id == CHAT_ID)
    .with_for_update(of=_topic, key_share=True, skip_locked=True)
)
_DUE = now + SECONDS
_HOLD_BACK = (
    sa.update(chats)
    .where(chats.c.id.in_(_topics), chats.c.not_before < _DUE)
    .values(not_before=_DUE)
)


def hold_back(tx: Tx, chat: int, seconds: float) -> None:
    """The platform limits this chat: nothing goes out for so long, in none of its topics."""
    tx.execute(_HOLD_BACK, {"chat_id": chat, "seconds": seconds})


_LIMITED = waited(chats.c.not_before)
_LOCK_WAITING = (
    sa.select(chats.c.id)
    .where(sa.or_(_LIMITED, chats.c.id.in_(runs.LIVE_CHATS)), chats.c.merged_into.is_(None))
    .order_by(chats.c.id)
    .with_for_update(key_share=True)
)
_ON_TIME = (
    sa.update(chats)
    .where(_LIMITED, among(chats.c.id, "chat_ids"))
    .values(not_before=moved(chats.c.not_before))
)
_NO_OLDER = (
    sa.update(chats)
    .where(stamped_before(_last_at), among(chats.c.id, "chat_ids"))
    .values(last_inbound_at=as_old(_last_at))
)


def follow_clock(tx: Tx, step: float) -> None:
    """The database's clock was set by `step` seconds: limits last as long as they would have, and
    windows are open as long. Locks every chat that waits for anything."""
    locked = tx.scalars(_LOCK_WAITING, {"step": step}).all()
    for move in (_ON_TIME, _NO_OLDER):
        tx.execute(move, {"step": step, "chat_ids": locked})


_OPT_OUT = sa.update(chats).where(IS_CHAT).values(opted_out_at=now)
_OPT_IN = sa.update(chats).where(IS_CHAT).values(opted_out_at=None)
_OFFER = sa.update(chats).where(IS_CHAT).values(offered=sa.bindparam("options"))
_FORGET = (
    sa.update(chats).where(sa.or_(IS_CHAT, chats.c.merged_into == CHAT_ID)).values(**WORDS[chats])
)


def opt_out(tx: Tx, chat: int, *, out: bool) -> None:
    """The person wants no more messages, or wants them again."""
    tx.execute(_OPT_OUT if out else _OPT_IN, {"chat_id": chat})


def offer(tx: Tx, chat: int, options: str | None) -> None:
    """Remember the choices that the last reply offered, as the channel's JSON."""
    tx.execute(_OFFER, {"chat_id": chat, "options": options})


def forget(tx: Tx, chat: int) -> None:
    """Take the words out of the chat's own row, and those of the chats that became part of it."""
    tx.execute(_FORGET, {"chat_id": chat})


_TELL = InsertOrSkip(told, told.c.chat, at=now)
_TELL_AGAIN = (
    sa.update(told)
    .where(
        told.c.chat == CHAT_ID, told.c.what == sa.bindparam("subject"), told.c.at < now - SECONDS
    )
    .values(at=now)
)


def tell_once(tx: Tx, chat: int, what: str, again_after: float) -> bool:
    """Tell whether the chat should be told `what` now: not if it was within `again_after` s."""
    if _TELL.run(tx, {"chat": chat, "what": what}) is not None:
        return True
    values = {"chat_id": chat, "subject": what, "seconds": again_after}
    return tx.execute(_TELL_AGAIN, values).rowcount == 1


_ANSWERED = (
    sa.update(chats)
    .where(IS_CHAT, sa.or_(chats.c.answered_at.is_(None), chats.c.answered_at < MOMENT))
    .values(answered_at=MOMENT)
)


def answered(tx: Tx, chat: int, at: float) -> None:
    """A person of ours wrote to the chat then (epoch seconds) with a device of their own."""
    tx.execute(_ANSWERED, {"chat_id": chat, "moment": at})
