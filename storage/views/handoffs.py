"""Chats that their agents handed over, and the wait for a person there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.domain.message import InboundKind
from bot.domain.reply import PartKind
from bot.domain.run import RunState
from storage.outbox import Notice, answered_at
from storage.schema.tables import chats, inbound, outbox, runs
from storage.statements.binds import CHAT_ID, SECONDS
from storage.statements.clock import now
from storage.statements.literals import is_in, later_of, unindexed
from storage.statements.sets import among, driving
from storage.statements.tx import Tx

AT_MOST = 200
"""Chats that are looked at, those that were handed over first."""
CHAT_IDS = "chat_ids"
"""The name of a bind that lists chats."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A chat that wants a person: since how many seconds, and how many of its messages wait for
    a person's words. `run` is the one whose agent asked."""

    chat: int
    account: int
    run: int
    since: float
    messages: int


_NEVER = sa.literal_column("0.0", sa.Double)
_as_bot = sa.func.coalesce(answered_at(chats.c.id), _NEVER)
_by_device = sa.func.coalesce(chats.c.answered_at, _NEVER)
ANSWERED_AT = later_of(_by_device, _as_bot)
"""The time of a person's last words in the chat: as the bot, or with a device of their own."""


def _handed_over(*conditions: sa.ColumnElement[bool], listed: bool = False) -> sa.Subquery:
    """The chats whose agents asked for a person, each with the moment from which one is wanted:
    that of the asking, or of the first message after a person's last words. With `listed` those of
    them that are in the list CHAT_IDS."""
    some = (
        sa.select(
            chats.c.id,
            chats.c.account,
            chats.c.handoff_run,
            chats.c.handoff_at,
            ANSWERED_AT.label("answered_at"),
        )
        .where(
            chats.c.handoff_at.is_not(None),
            chats.c.paused_until > now,
            chats.c.merged_into.is_(None),
            *conditions,
        )
        .order_by(chats.c.handoff_at)
        .limit(sa.literal_column(str(AT_MOST)))
        .subquery()
    )
    nobody_came = some.c.answered_at <= some.c.handoff_at
    first = _unanswered(some, sa.func.min(inbound.c.received_at))
    since = sa.case((nobody_came, some.c.handoff_at), else_=first)
    # Cut off, or the planner works the moment out once more wherever it is named.
    each = sa.select(some, since.label("since")).offset(sa.literal_column("0"))
    return (each.where(among(some.c.id, CHAT_IDS)) if listed else each).subquery()


def _unanswered(some: sa.Subquery, told: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
    """Something told of the messages that came after a person's last words and wait: found from
    the runs that wait in the chat, and not among all that was ever said there."""
    return (
        sa.select(told)
        .select_from(driving(runs, inbound, inbound.c.run == runs.c.id))
        .where(
            runs.c.chat == some.c.id,
            is_in(runs.c.state, RunState.WAITING),
            unindexed(inbound.c.chat) == some.c.id,
            unindexed(inbound.c.received_at) > some.c.answered_at,
            inbound.c.kind != InboundKind.REMINDER.value,
        )
        .correlate(some)
        .scalar_subquery()
    )


def _wanted_of(some: sa.Subquery) -> sa.Select[Any]:
    messages = _unanswered(some, sa.func.count())
    return (
        sa.select(some.c.id, some.c.account, some.c.handoff_run, now - some.c.since, messages)
        .where(some.c.since.is_not(None))
        .order_by(some.c.since, some.c.id)
    )


_all = _handed_over()
_WANTED, _WANTED_IN = _wanted_of(_all), _wanted_of(_handed_over(chats.c.id == CHAT_ID))
_listed = _handed_over(listed=True)
WANTING, WANTING_LISTED = (
    sa.select(some.c.id.label("chat"), some.c.since.label("at"))
    .where(some.c.since.is_not(None))
    .order_by(some.c.since, some.c.id)
    for some in (_all, _listed)
)
"""The chats that want a person, each since when, in epoch seconds: all, and those of CHAT_IDS."""
WANTING_ORDER = (_all.c.id, _all.c.since)
COUNT = (
    sa.select(sa.func.count()).select_from(_all).where(_all.c.since.is_not(None)).scalar_subquery()
)
"""The number of chats that want a person, up to AT_MOST."""


def wanted(tx: Tx, chat: int | None = None) -> Sequence[Wanted]:
    """The chats that want a person, the longest wait first; or this one, if it does."""
    if chat is not None:
        return [Wanted(*row) for row in tx.execute(_WANTED_IN, {"chat_id": chat})]
    return [Wanted(*row) for row in tx.execute(_WANTED)]


_REASON = (
    sa.select(runs.c.handoff)
    .join(chats, chats.c.handoff_run == runs.c.id)
    .where(chats.c.id == CHAT_ID, chats.c.paused_until > now)
)


def reason(tx: Tx, chat: int) -> str:
    """The words in which an agent asked for a person in this chat; empty if there are none."""
    return tx.scalar(_REASON, {"chat_id": chat}) or ""


_told = sa.exists(
    sa.select(1).where(
        outbox.c.run == chats.c.handoff_run,
        outbox.c.kind == PartKind.NOTICE.value,
        outbox.c.part == int(Notice.NOBODY_YET),
    )
).correlate(chats)
_NOBODY_CAME = sa.and_(
    chats.c.handoff_at <= now - SECONDS,
    chats.c.paused_until > now,
    chats.c.merged_into.is_(None),
    chats.c.opted_out_at.is_(None),
    chats.c.handoff_at >= ANSWERED_AT,
    ~_told,
)
_FORSAKEN = (
    sa.select(chats.c.id)
    .where(_NOBODY_CAME, among(chats.c.account, "account_ids"))
    .order_by(chats.c.handoff_at)
    .limit(sa.literal_column(str(AT_MOST)))
)
_IS_FORSAKEN = sa.select(chats.c.handoff_run).where(chats.c.id == CHAT_ID, _NOBODY_CAME)


def forsaken(tx: Tx, accounts: Sequence[int], after: float) -> Sequence[int]:
    """Chats of these accounts in which no person has said anything for `after` seconds since the
    agent asked for one, and in which that was not told yet."""
    return tx.scalars(_FORSAKEN, {"account_ids": list(accounts), "seconds": after}).all()


def forsaken_by(tx: Tx, chat: int, after: float) -> int | None:
    """The run whose agent asked in such a chat, which is locked; None if it is none any more."""
    found: int | None = tx.scalar(_IS_FORSAKEN, {"chat_id": chat, "seconds": after})
    return found
