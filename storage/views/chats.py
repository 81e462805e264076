"""Chats as operators read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa

from bot.domain.message import ChannelName
from storage.runs.rows import OPEN
from storage.schema.tables import accounts, chats, events, inbound, outbox, payloads, runs
from storage.statements.binds import AT_MOST
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.sets import among
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


def _count(share: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    of_chat = sa.select(sa.func.count()).where(runs.c.chat == chats.c.id, share)
    return of_chat.correlate(chats).scalar_subquery()


_WAITING, _HEAD = (_count(share) for share in OPEN)
_LINE = Entity(
    ChatLine,
    chats,
    channel=(accounts.c.channel, ChannelName),
    account=accounts.c.account,
    bot=accounts.c.name,
    live=_WAITING + _HEAD,
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


_OF_IDS = _LINES.where(among(chats.c.id, "chat_ids"))


def chats_of(tx: Tx, ids: Sequence[int]) -> Mapping[int, ChatLine]:
    """These chats, by their numbers."""
    found = _LINE.all(tx.execute(_OF_IDS, {"chat_ids": list(ids)})) if ids else ()
    return {line.id: line for line in found}


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


_LOOKED_AT = 1_000
"""Messages that are looked at for one page of the chats that were heard lately."""
_MESSAGE = sa.bindparam("before_message", type_=sa.BigInteger)
_latest = (
    sa.select(inbound.c.id, inbound.c.chat, inbound.c.received_at)
    .where(inbound.c.id < _MESSAGE)
    .order_by(inbound.c.id.desc())
    .limit(sa.literal_column(str(_LOOKED_AT)))
    .subquery("latest")
)
_heard = (
    sa.select(
        _latest.c.chat,
        sa.func.max(_latest.c.id).label("message"),
        sa.func.max(_latest.c.received_at).label("at"),
    )
    .group_by(_latest.c.chat)
    .subquery("heard")
)
_newer = inbound.alias("newer")
_IS_SHOWN = sa.exists(
    sa.select(1).where(
        _newer.c.chat == _heard.c.chat,
        _newer.c.received_at >= _heard.c.at,
        _newer.c.id >= _MESSAGE,
    )
).correlate(_heard)
_HEARD_LATELY = (
    sa.select(_heard.c.chat, _heard.c.message)
    .where(~_IS_SHOWN)
    .order_by(_heard.c.message.desc())
    .limit(AT_MOST)
)
_OLDEST_LOOKED_AT = sa.select(sa.func.min(_latest.c.id), sa.func.count())
_FIRST = 1 << 62


@dataclass(frozen=True, slots=True)
class HeardLately:
    """Chats, those that were heard last first. Further ones are before the message `more`; None:
    there are none."""

    chats: Sequence[int]
    more: int | None


def heard_lately(tx: Tx, before: int | None, limit: int) -> HeardLately:
    """The chats of the messages before a message, or of the newest, each once. What is read does
    not grow with the number of chats, nor with what was said: a page may so be short."""
    asked = {"before_message": _FIRST if before is None else before}
    found = tx.execute(_HEARD_LATELY, asked | {"at_most": limit}).all()
    oldest, looked_at = tx.execute(_OLDEST_LOOKED_AT, asked).one()
    more = oldest if looked_at == _LOOKED_AT else None
    if len(found) == limit:
        more = found[-1].message
    return HeardLately([row.chat for row in found], more)
