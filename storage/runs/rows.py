"""A run as a row: reading it, and the conditions that its moves share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from bot.domain.decisions.retry import RETRY
from bot.domain.ending import Ending
from bot.domain.run import Run, RunState
from storage.schema.tables import chats, inbound, runs
from storage.statements.binds import CHAT_ID, HOLDER_ID, MOMENT, RUN_ID
from storage.statements.chat_rows import Blank, Page
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.literals import is_in, is_not, word
from storage.statements.sets import among
from storage.statements.tx import Tx

RUN = Entity(Run, runs)

WAITING = is_in(runs.c.state, RunState.WAITING)
READY = is_in(runs.c.state, RunState.READY)
RUNNING = is_in(runs.c.state, RunState.RUNNING)
LIVE = is_not(runs.c.state, RunState.ENDED)
ENDED = is_in(runs.c.state, RunState.ENDED)
IS_RUN = runs.c.id == RUN_ID
FOR_EVER = 1e12
"""Seconds: a run with this wait is never due by itself."""
KEPT = runs.c.not_before > sa.literal_column("1e11", sa.Double)
"""The condition that a run was kept (`keep`): it is due as soon as its account is up."""
HEADS = (RunState.READY, RunState.RUNNING)
HEAD = is_in(runs.c.state, *HEADS)
OPEN = (WAITING, HEAD)
"""The live runs as two conditions, each spelled as its partial index is. SQLite uses such an index
only where the condition stands alone, and not within an OR."""


def of_chat(chat: object) -> sa.ColumnElement[bool]:
    """The condition for all runs of a chat, spelled so that their partial indexes are used."""
    return sa.or_(*(sa.and_(runs.c.chat == chat, share) for share in (*OPEN, ENDED)))


SUSPECT = sa.and_(runs.c.replied == sa.false(), runs.c.deaths >= RETRY.suspect_after)
"""The condition that a run may be what kills its holders: they died too often at its agent."""

CONVERSATION = sa.func.coalesce(runs.c.moves_to, runs.c.chat)
"""The chat that a run belongs to; the run may still stand in one that was merged into it."""

LIVE_CHATS = sa.union_all(*(sa.select(CONVERSATION).where(share) for share in OPEN))
"""The chats of every run that has not ended."""

PAUSED = sa.exists(
    sa.select(1).where(chats.c.id == CONVERSATION, chats.c.paused_until > now)
).correlate(runs)
"""The condition that the run's chat is paused. The chat has to be locked, since a pause that is
being committed would be missed."""

PUT_BACK: dict[str, Any] = {
    "state": sa.case((PAUSED, word(RunState.WAITING)), else_=word(RunState.READY)),
    "chat": sa.case((PAUSED, CONVERSATION), else_=runs.c.chat),
    "holder": None,
    "fence": runs.c.fence + 1,
    "quarantined": SUSPECT,
}
"""running -> ready, or waiting in a paused chat. A suspect is quarantined from now on."""

_FIND = sa.select(*RUN.columns).where(IS_RUN)
_FIND_LOCKED = _FIND.with_for_update(key_share=True)


def find(tx: Tx, run: int, *, lock: bool = False) -> Run | None:
    """One run, or None."""
    return RUN.first(tx.execute(_FIND_LOCKED if lock else _FIND, {"run_id": run}))


_HELD_BY = sa.select(*RUN.columns).where(RUNNING, runs.c.holder == HOLDER_ID)


def held_by(tx: Tx, holder: int) -> Sequence[Run]:
    """The runs that are running under this holder."""
    return RUN.all(tx.execute(_HELD_BY, {"holder_id": holder}))


_LAST_ENDED = (
    sa.select(*RUN.columns)
    .where(runs.c.chat == CHAT_ID, ENDED, among(runs.c.ending, "endings"))
    .order_by(runs.c.ended_at.desc(), runs.c.id.desc())
    .limit(1)
)


def last_ended(tx: Tx, chat: int, endings: Sequence[Ending]) -> Run | None:
    """The chat's run that was the last to end in one of these ways, or None."""
    values = {"chat_id": chat, "endings": [e.value for e in endings]}
    return RUN.first(tx.execute(_LAST_ENDED, values))


_SET_ASIDE_REASON = sa.select(runs.c.set_aside).where(IS_RUN)


def set_aside_reason(tx: Tx, run: int) -> str:
    """The reason why a run was set aside; empty if it was not."""
    return tx.scalar(_SET_ASIDE_REASON, {"run_id": run}) or ""


_COUNT_WAITING = sa.select(
    sa.func.coalesce(sa.func.sum(runs.c.messages), sa.literal_column("0"))
).where(runs.c.chat == CHAT_ID, WAITING)


def waiting_messages(tx: Tx, chat: int) -> int:
    """The number of messages in the waiting runs of this chat."""
    return int(tx.scalars(_COUNT_WAITING, {"chat_id": chat}).one())


_written_at = sa.func.coalesce(inbound.c.sent_at, inbound.c.received_at)
_HAS_LATER = sa.exists(
    sa.select(1).where(inbound.c.run == runs.c.id, _written_at > MOMENT)
).correlate(runs)
_WRITTEN_AFTER = sa.union_all(
    *(
        sa.select(runs.c.id).where(
            runs.c.chat == CHAT_ID, share, sa.or_(runs.c.order_at > MOMENT, _HAS_LATER)
        )
        for share in OPEN
    )
)


def written_after(tx: Tx, chat: int, moment: float | None) -> frozenset[int]:
    """The live runs of the chat that answer something written after this moment (epoch seconds),
    even if it joined something older; none if the moment is not known."""
    if moment is None:
        return frozenset()
    return frozenset(tx.scalars(_WRITTEN_AFTER, {"chat_id": chat, "moment": moment}))


page = Page(runs, ENDED, key=runs.c.ended_at)
blank = Blank(runs, runs.c.id)
