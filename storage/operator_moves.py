"""The moves that only an operator makes. Each is one guarded statement; the chat is locked.

ready | waiting -> the same, due at once     (make_due)
running | ready | waiting -> apology owed    (owe_apology)
uncertain       ->  sent                     (believe_arrived)
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import and_, case, false, func, or_, select, true, update

from bot.domain.delivery import PartState
from bot.domain.run import LIVE
from storage.engine.clock import now
from storage.engine.insert import insert_or_skip
from storage.engine.tx import Tx
from storage.holders import alive
from storage.schema.tables import (
    chats,
    edits,
    holders,
    inbound,
    outbox,
    payloads,
    receipts,
    reminders,
    replies,
    runs,
    steps,
)

_AT_ONCE = 200
"""Rows from which one transaction takes the words."""


def make_due(tx: Tx, run: int) -> bool:
    """A run that waits for its time, or was set aside, may be claimed now. False: it may be
    already, or somebody has it."""
    late = or_(runs.c.not_before > now, runs.c.set_aside.is_not(None))
    move = (
        update(runs)
        .where(runs.c.id == run, runs.c.state.in_(("ready", "waiting")), late)
        .values(not_before=now, set_aside=None)
    )
    return tx.execute(move).rowcount == 1


def set_aside_reason(tx: Tx, run: int) -> str:
    """Why a run is kept from being claimed; empty when it is not."""
    return tx.scalar(select(runs.c.set_aside).where(runs.c.id == run)) or ""


def owe_apology(tx: Tx, run: int, why: str) -> bool:
    """Whoever works on the run loses it, and whoever takes it up next only apologises: the
    apology is stored in this transaction. False: the run ended, or its answer is stored."""
    move = (
        update(runs)
        .where(
            runs.c.id == run,
            runs.c.state.in_([state.value for state in LIVE]),
            runs.c.replied == false(),
        )
        .values(
            state=case((runs.c.state == "running", "ready"), else_=runs.c.state),
            holder=None,
            fence=runs.c.fence + 1,
            lane=false(),
            replied=true(),
            not_before=now,
            set_aside=None,
            detail=why,
        )
    )
    return tx.execute(move).rowcount == 1


def believe_arrived(tx: Tx, part: int, attempts: int, receipt: str) -> bool:
    """uncertain -> sent, on somebody's word instead of the provider's. False: it moved on."""
    move = (
        update(outbox)
        .where(outbox.c.id == part, outbox.c.state == "uncertain", outbox.c.attempts == attempts)
        .values(
            state=PartState.SENT.value,
            receipt=receipt,
            sent_at=now,
            confirmed=True,
            error="",
            code="",
        )
    )
    if tx.execute(move).rowcount != 1:
        return False
    values: dict[str, object] = {
        "outbox": part,
        "receipt": receipt,
        "attempt": attempts,
        "at": now,
    }
    tx.execute(insert_or_skip(tx, receipts, values))
    return True


def unfinished_parts(tx: Tx, chat: int) -> int:
    """How many messages of a chat are on their way or about to be."""
    return int(
        tx.scalars(
            select(func.count()).where(
                outbox.c.chat == chat, outbox.c.state.in_(("pending", "sending"))
            )
        ).one()
    )


def overdue_holders(tx: Tx, lease_seconds: float) -> int:
    """Holders that did not renew in time and that nobody has declared dead."""
    question = select(func.count()).where(
        holders.c.gone_at.is_(None), ~alive(holders.c.id, lease_seconds)
    )
    return int(tx.scalars(question).one())


def dismiss_letter(tx: Tx, payload: int, why: str) -> bool:
    """A dead letter needs nobody's eyes any more; it stays stored. False: it is none."""
    move = (
        update(payloads)
        .where(payloads.c.id == payload, payloads.c.error.is_not(None))
        .values(error=None, ignored=why)
    )
    return tx.execute(move).rowcount == 1


def forget_messages(tx: Tx, chat: int, after: int, until: int) -> int | None:
    """Take the words out of a bounded number of the chat's messages, from id `after` to
    `until`; returns the last id, or None when there were no more."""
    ids = _page(tx, inbound.c.id, inbound.c.chat == chat, after, until)
    if not ids:
        return None
    blank = dict.fromkeys(("text", "sender_name", "forwarded_from", "button"), "")
    empty = {"attachments": "[]", "extra": "{}", "quoted": None}
    tx.execute(update(inbound).where(inbound.c.id.in_(ids)).values(**blank, **empty))
    tx.execute(update(payloads).where(payloads.c.inbound.in_(ids)).values(body=""))
    tx.execute(update(edits).where(edits.c.inbound.in_(ids)).values(text="", text_before=""))
    return ids[-1]


def forget_parts(tx: Tx, chat: int, after: int, until: int) -> int | None:
    """The same for what was sent to the chat."""
    ids = _page(tx, outbox.c.id, outbox.c.chat == chat, after, until)
    if not ids:
        return None
    tx.execute(update(outbox).where(outbox.c.id.in_(ids)).values(text="", wire=""))
    return ids[-1]


def forget_runs(tx: Tx, chat: int, after: int, until: int) -> int | None:
    """The same for stored replies and the results of steps."""
    ids = _page(tx, runs.c.id, runs.c.chat == chat, after, until)
    if not ids:
        return None
    tx.execute(update(replies).where(replies.c.run.in_(ids)).values(text="", body="{}"))
    done = and_(steps.c.run.in_(ids), steps.c.state == "done")
    tx.execute(update(steps).where(done).values(result="null"))
    return ids[-1]


def forget_chat(tx: Tx, chat: int) -> None:
    """The same for the chat itself and what it wanted to be reminded of."""
    tx.execute(update(chats).where(chats.c.id == chat).values(name="", offered=None))
    waiting = and_(reminders.c.chat == chat, reminders.c.state == "waiting")
    tx.execute(update(reminders).where(waiting).values(state="cancelled"))
    tx.execute(update(reminders).where(reminders.c.chat == chat).values(text=""))


def newest(tx: Tx, chat: int) -> tuple[int, int, int]:
    """The last ids of the chat's messages, parts and runs; 0 where there is none."""
    return (
        tx.scalar(select(func.max(inbound.c.id)).where(inbound.c.chat == chat)) or 0,
        tx.scalar(select(func.max(outbox.c.id)).where(outbox.c.chat == chat)) or 0,
        tx.scalar(select(func.max(runs.c.id)).where(runs.c.chat == chat)) or 0,
    )


def _page(  # type: ignore[no-untyped-def]
    tx: Tx, column, whose, after: int, until: int
) -> Sequence[int]:
    inside = and_(whose, column > after, column <= until)
    return tx.scalars(select(column).where(inside).order_by(column).limit(_AT_ONCE)).all()
