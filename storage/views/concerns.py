"""Chats that want a person, each with its reasons and their moments.

Each reason is a question of its own that reads an index of what is unusual. A page goes on behind a
chat of one reason (its moment and number), so that it costs the same however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.domain.concern import GIVEN_UP, Concern
from bot.domain.run import RunState
from storage.schema.tables import chats, outbox, runs
from storage.statements.binds import AT_MOST
from storage.statements.clock import now
from storage.statements.literals import is_in
from storage.statements.sets import among, driving
from storage.statements.tx import Tx
from storage.views.handoffs import (
    ANSWERED_AT,
    CHAT_IDS,
    WANTING,
    WANTING_LISTED,
    WANTING_ORDER,
)
from storage.views.health.diagnostics import PART_MOVED_AT, REFUSED, UNCERTAIN

_LATELY = sa.literal_column(str(7 * 86_400.0), sa.Double)
"""Seconds for which a refusal or an apology wants somebody's eyes."""
_LOOKED_AT = sa.literal_column("1000", sa.Integer)
"""Rows that are looked at for one reason, in the order of an index."""
COUNTED = 200
"""Chats of one reason that are counted."""

_later = runs.alias("later")
_WENT_ON = sa.or_(
    *(
        sa.exists(sa.select(1).where(_later.c.chat == runs.c.chat, *more)).correlate(runs)
        for more in (
            (
                is_in(_later.c.state, RunState.ENDED),
                sa.tuple_(_later.c.ended_at, _later.c.id) > sa.tuple_(runs.c.ended_at, runs.c.id),
            ),
            (is_in(_later.c.state, RunState.READY, RunState.RUNNING),),
            (is_in(_later.c.state, RunState.WAITING),),
        )
    )
)
"""The chat has another run that ended later, or one that has not ended."""
_oldest_waiting = (
    sa.select(sa.func.min(_later.c.created_at))
    .where(_later.c.chat == chats.c.id, is_in(_later.c.state, RunState.WAITING))
    .correlate(chats)
    .scalar_subquery()
)
_WAITED_SINCE = sa.func.coalesce(
    _oldest_waiting, chats.c.last_inbound_at, chats.c.created_at, type_=sa.Double
)
_BEHIND = sa.tuple_(
    sa.bindparam("after_at", type_=sa.Double), sa.bindparam("after_chat", type_=sa.BigInteger)
)


@dataclass(frozen=True, slots=True)
class _Reason:
    """The rows that show one reason, each with its chat and its moment, oldest first."""

    rows: sa.Select[Any]
    chat: sa.ColumnElement[int]
    at: sa.ColumnElement[float]
    once: bool = False
    """Each chat has one row, and an index has these in the order of a page."""
    of_chats: sa.Select[Any] | None = None
    """The rows of the chats `CHAT_IDS`, where they are found in another way."""

    def of_some(self) -> sa.Select[Any]:
        """The chats `CHAT_IDS`, as far as they have this reason."""
        return self.of(among(self.chat, CHAT_IDS)) if self.of_chats is None else self.of_chats

    def of(self, *conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
        """Each chat once, with its oldest moment."""
        found = self.rows.where(*conditions)
        if self.once:
            return found
        some = found.limit(_LOOKED_AT).subquery()
        return sa.select(some.c.chat, sa.func.min(some.c.at).label("at")).group_by(some.c.chat)

    def page(self) -> sa.Select[Any]:
        """Chats behind a mark."""
        if self.once:
            return self.rows.where(sa.tuple_(self.at, self.chat) > _BEHIND).limit(AT_MOST)
        each = self.of().subquery()
        return (
            sa.select(each.c.chat, each.c.at)
            .where(sa.tuple_(each.c.at, each.c.chat) > _BEHIND)
            .order_by(each.c.at, each.c.chat)
            .limit(AT_MOST)
        )

    def count(self) -> sa.ScalarSelect[int]:
        """The number of chats, up to COUNTED. Of their moments nothing is asked: SQLite would work
        each of them out."""
        found = self.rows.with_only_columns(self.chat.label("chat"))
        if not self.once:
            some = found.limit(_LOOKED_AT).subquery()
            found = sa.select(some.c.chat).distinct()
        most = found.limit(sa.literal_column(str(COUNTED))).subquery()
        return sa.select(sa.func.count()).select_from(most).scalar_subquery()


_LAST_ENDED = (
    sa.select(_later.c.id)
    .where(_later.c.chat == chats.c.id, is_in(_later.c.state, RunState.ENDED))
    .order_by(_later.c.ended_at.desc(), _later.c.id.desc())
    .limit(sa.literal_column("1"))
    .correlate(chats)
    .scalar_subquery()
)


def _answered_in(chat: sa.Column[int]) -> sa.ScalarSelect[float]:
    """The time of a person's last words there, looked up row by row: joined, PostgreSQL would read
    every chat for a few hundred rows."""
    return sa.select(ANSWERED_AT).where(chats.c.id == chat).correlate(chat.table).scalar_subquery()


_WAS_GIVEN_UP = (
    is_in(runs.c.ending, *GIVEN_UP),
    runs.c.ended_at > now - _LATELY,
    ~_WENT_ON,
    runs.c.ended_at >= _answered_in(runs.c.chat),
)
_given_up = sa.select(runs.c.chat, runs.c.ended_at.label("at"))
_ROWS: Mapping[Concern, _Reason] = {
    Concern.ASKED: _Reason(WANTING, *WANTING_ORDER, of_chats=WANTING_LISTED),
    Concern.APOLOGISED: _Reason(
        _given_up.where(*_WAS_GIVEN_UP).order_by(runs.c.ended_at, runs.c.chat),
        runs.c.chat,
        runs.c.ended_at,
        once=True,
        of_chats=_given_up.select_from(driving(chats, runs, runs.c.id == _LAST_ENDED)).where(
            among(chats.c.id, CHAT_IDS), *_WAS_GIVEN_UP
        ),
    ),
    Concern.REFUSED: _Reason(
        sa.select(outbox.c.chat, outbox.c.created_at.label("at"))
        .where(
            *REFUSED,
            outbox.c.created_at > now - _LATELY,
            outbox.c.created_at >= _answered_in(outbox.c.chat),
        )
        .order_by(outbox.c.id),
        outbox.c.chat,
        outbox.c.created_at,
    ),
    Concern.UNCERTAIN: _Reason(
        sa.select(outbox.c.chat, PART_MOVED_AT.label("at")).where(*UNCERTAIN).order_by(outbox.c.id),
        outbox.c.chat,
        PART_MOVED_AT,
    ),
    Concern.PAUSED: _Reason(
        sa.select(chats.c.id.label("chat"), _WAITED_SINCE.label("at"))
        .where(
            chats.c.paused_until.is_not(None),
            chats.c.paused_until > now,
            chats.c.merged_into.is_(None),
        )
        # The order of its index: in that of the chats, all of them would be read.
        .order_by(chats.c.paused_until),
        chats.c.id,
        _WAITED_SINCE,
    ),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """The position of a chat among those of one reason: since when (epoch seconds), and its id."""

    at: float
    chat: int


_PAGES = {concern: reason.page() for concern, reason in _ROWS.items()}
_COUNTS = sa.select(*(reason.count() for reason in _ROWS.values()))
_OF_CHATS = {concern: reason.of_some() for concern, reason in _ROWS.items()}


def with_concern(tx: Tx, concern: Concern, after: Mark | None, limit: int) -> Sequence[Mark]:
    """Chats that want a person for this reason, the longest wait first, behind a mark."""
    before_all = Mark(0.0, 0)
    mark = after or before_all
    values = {"after_at": mark.at, "after_chat": mark.chat, "at_most": limit}
    return [Mark(row.at, row.chat) for row in tx.execute(_PAGES[concern], values)]


def count_concerns(tx: Tx) -> Mapping[Concern, int]:
    """The number of chats for each reason, up to COUNTED."""
    return dict(zip(_ROWS, tx.execute(_COUNTS).one(), strict=True))


def concerns_of(tx: Tx, of: Sequence[int]) -> Mapping[int, Mapping[Concern, float]]:
    """Every reason for which these chats want a person, each since when, in epoch seconds."""
    found: dict[int, dict[Concern, float]] = {chat: {} for chat in of}
    for concern, question in _OF_CHATS.items() if of else ():
        for chat, at in tx.execute(question, {CHAT_IDS: list(of)}):
            found[chat][concern] = at
    return found
