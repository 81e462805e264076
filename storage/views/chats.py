"""Chats as operators read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa

from bot.domain.message import ChannelName
from bot.domain.run import RunState
from storage.schema.tables import accounts, chats, events, inbound, outbox, payloads, runs
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.literals import is_not
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class ChatLine:
    """A chat as operators see it. `account` is our own id at the platform, `bot` the name by which
    people know it there. Times in epoch seconds; `live` counts its unended runs."""

    id: int
    channel: ChannelName
    account: str
    bot: str
    address: str
    topic: str
    kind: str
    name: str
    language: str
    last_inbound_at: float | None
    paused_until: float | None
    handoff_at: float | None
    unreachable_since: float | None
    unreachable_reason: str | None
    opted_out_at: float | None
    not_before: float
    live: int


_LINE = Entity(
    ChatLine,
    chats,
    channel=(accounts.c.channel, ChannelName),
    account=accounts.c.account,
    bot=accounts.c.name,
    live=sa.select(sa.func.count())
    .where(runs.c.chat == chats.c.id, is_not(runs.c.state, RunState.ENDED))
    .correlate(chats)
    .scalar_subquery(),
)
_LINES = (
    sa.select(*_LINE.columns)
    .join(accounts, accounts.c.id == chats.c.account)
    .order_by(chats.c.last_inbound_at.desc(), chats.c.id)
)


def chats_listed(
    tx: Tx,
    ids: Sequence[int] | None = None,
    *,
    paused: bool = False,
    unreachable: bool = False,
    but: Sequence[int] = (),
    limit: int = 50,
) -> Sequence[ChatLine]:
    """Chats, those that were heard last first, without those in `but`."""
    question = _LINES.limit(limit)
    if ids is not None:
        question = question.where(chats.c.id.in_(ids))
    if but:
        question = question.where(chats.c.id.not_in(but))
    if paused:
        question = question.where(chats.c.paused_until > now)
    if unreachable:
        question = question.where(chats.c.unreachable_since.is_not(None))
    return _LINE.all(tx.execute(question))


class LastIds(NamedTuple):
    """The newest message, part, run, event and payload; 0 where there is none."""

    message: int
    part: int
    run: int
    event: int
    payload: int


_LAST_IDS = sa.select(
    *(
        sa.func.coalesce(sa.select(sa.func.max(table.c.id)).scalar_subquery(), 0)
        for table in (inbound, outbox, runs, events, payloads)
    )
)


def last_ids(tx: Tx) -> LastIds:
    """The newest ids of the tables at this moment."""
    return LastIds._make(tx.execute(_LAST_IDS).one())
