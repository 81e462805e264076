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
from storage.statements.literals import is_in
from storage.statements.sets import among
from storage.statements.tx import Tx

AT_MOST = 200
"""Chats that are looked at, those that were handed over first."""


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
ANSWERED_AT = sa.case((_by_device > _as_bot, _by_device), else_=_as_bot)
"""The time of a person's last words in the chat: as the bot, or with a device of their own."""
_handed_over = (
    sa.select(
        chats.c.id,
        chats.c.account,
        chats.c.handoff_run,
        chats.c.handoff_at,
        ANSWERED_AT.label("answered_at"),
    )
    .where(
        chats.c.handoff_at.is_not(None), chats.c.paused_until > now, chats.c.merged_into.is_(None)
    )
    .order_by(chats.c.handoff_at)
    .limit(sa.literal_column(str(AT_MOST)))
    .subquery()
)
_ASKED = _handed_over.c.answered_at <= _handed_over.c.handoff_at
"""No person has said anything since the agent asked for one."""


def _unanswered(told: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
    """Something told of the messages that came after a person's last words."""
    return (
        sa.select(told)
        .select_from(inbound.join(runs, runs.c.id == inbound.c.run))
        .where(
            inbound.c.chat == _handed_over.c.id,
            inbound.c.received_at > _handed_over.c.answered_at,
            inbound.c.kind != InboundKind.REMINDER.value,
            is_in(runs.c.state, RunState.WAITING),
        )
        .correlate(_handed_over)
        .scalar_subquery()
    )


_each = sa.select(
    _handed_over.c.id,
    _handed_over.c.account,
    _handed_over.c.handoff_run,
    sa.case(
        (_ASKED, _handed_over.c.handoff_at), else_=_unanswered(sa.func.min(inbound.c.received_at))
    ).label("since"),
    _unanswered(sa.func.count()).label("messages"),
    _ASKED.label("asked"),
).subquery()
_WANTS = sa.or_(_each.c.asked, _each.c.messages > 0)
_WANTED = (
    sa.select(
        _each.c.id, _each.c.account, _each.c.handoff_run, now - _each.c.since, _each.c.messages
    )
    .where(_WANTS)
    .order_by(_each.c.since, _each.c.id)
)
WANTING = (
    sa.select(_each.c.id.label("chat"), _each.c.since.label("at"))
    .where(_WANTS)
    .order_by(_each.c.since, _each.c.id)
)
"""The chats that want a person, each since when, in epoch seconds."""
WANTING_ORDER = (_each.c.id, _each.c.since)
COUNT = sa.select(sa.func.count()).select_from(_each).where(_WANTS).scalar_subquery()
"""The number of chats that want a person, up to AT_MOST."""


def wanted(tx: Tx) -> Sequence[Wanted]:
    """The chats that want a person, the longest wait first."""
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
