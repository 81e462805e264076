"""Runs as operators and metrics read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from bot.domain.ending import Cause, Ending
from bot.domain.message import ChannelName, clean
from bot.domain.run import RunState
from storage.holders import alive
from storage.runs.rows import HEAD, KEPT, OPEN, WAITING, of_chat
from storage.schema.tables import Watched, accounts, chats, holders, inbound, outbox, runs
from storage.statements.binds import ACCOUNT_ID, AT_MOST, CHAT_ID, LEASE_SECONDS, RUN_ID
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.literals import is_in
from storage.statements.sets import among
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run as operators see it. `age` in seconds since it was made; times in epoch seconds.

    `requests` are the ids of all its messages; `holder` is the name of the process that has
    it, and `holder_alive` says whether that process may be believed alive. `kept`: its answer is
    stored and waits for its account to be up again.
    """

    id: int
    chat: int
    account: int
    channel: ChannelName
    address: str
    topic: str
    state: RunState
    ending: Ending | None
    cause: Cause | None
    detail: str
    set_aside: str
    attempts: int
    failures: int
    deaths: int
    replied: bool
    holder: str
    holder_alive: bool
    age: float
    created_at: float
    not_before: float
    kept: bool
    deadline_at: float | None
    ended_at: float | None
    request_id: str
    requests: tuple[str, ...] = ()


_LINE = Entity(
    RunLine,
    runs,
    channel=(accounts.c.channel, ChannelName),
    address=chats.c.address,
    topic=chats.c.topic,
    set_aside=sa.func.coalesce(runs.c.set_aside, ""),
    holder=sa.func.coalesce(holders.c.name, ""),
    kept=sa.case((KEPT, sa.true()), else_=sa.false()),
    holder_alive=alive(runs.c.holder, LEASE_SECONDS),
    age=now - runs.c.created_at,
)
_LINES = (
    sa.select(*_LINE.columns)
    .join(chats, chats.c.id == runs.c.chat)
    .join(accounts, accounts.c.id == runs.c.account)
    .outerjoin(holders, holders.c.id == runs.c.holder)
    .order_by(runs.c.id.desc())
)
_ONE = _LINES.where(runs.c.id == RUN_ID)


@dataclass(frozen=True, slots=True)
class RunFilter:
    """A filter of runs; empty fields exclude nothing. `older` and `newer` are ages in
    seconds, `before` a run's id for the next page, and `beyond` one below which nobody looks."""

    states: tuple[RunState, ...] = ()
    endings: tuple[Ending, ...] = ()
    channel: ChannelName | None = None
    chats: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()
    older: float | None = None
    newer: float | None = None
    error: str = ""
    before: int | None = None
    beyond: int = 0
    limit: int = 50

    @property
    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """The filter as SQL."""
        asked: list[tuple[object, sa.ColumnElement[bool]]] = [
            (self.states, is_in(runs.c.state, *self.states)),
            (self.endings, is_in(runs.c.ending, *self.endings)),
            (self.channel, accounts.c.channel == self.channel),
            (self.chats, sa.or_(sa.false(), *map(of_chat, self.chats))),
            (self.ids, sa.or_(sa.false(), *(runs.c.id == number for number in self.ids))),
            (self.older is not None, runs.c.created_at <= now - (self.older or 0.0)),
            (self.newer is not None, runs.c.created_at >= now - (self.newer or 0.0)),
            (self.error, runs.c.detail.icontains(clean(self.error), autoescape=True)),
            (self.before is not None, runs.c.id < (self.before or 0)),
            (self.beyond, runs.c.id > self.beyond),
        ]
        return [condition for wanted, condition in asked if wanted]


def runs_listed(tx: Tx, wanted: RunFilter, lease_seconds: float) -> Sequence[RunLine]:
    """The runs that match, newest first."""
    question = _LINES.where(*wanted.conditions).limit(wanted.limit)
    return _lines(tx, question, lease_seconds=lease_seconds)


_BEFORE = sa.select(runs.c.ended_at).where(runs.c.id == RUN_ID)
_LAST_OF_CHAT = (
    sa.select(runs.c.id)
    .where(
        runs.c.chat == CHAT_ID,
        is_in(runs.c.state, RunState.ENDED),
        sa.tuple_(runs.c.ended_at, runs.c.id)
        < sa.tuple_(sa.bindparam("moment", type_=sa.Double), RUN_ID),
    )
    .order_by(runs.c.ended_at.desc(), runs.c.id.desc())
    .limit(AT_MOST)
)
_WAITING_OF_CHAT = (
    sa.select(runs.c.id)
    .where(runs.c.chat == CHAT_ID, WAITING)
    .order_by(runs.c.order_at.desc(), runs.c.id.desc())
    .limit(AT_MOST)
)
_HEAD_OF_CHAT = sa.select(runs.c.id).where(runs.c.chat == CHAT_ID, HEAD)
_LAST, _LATEST = 1 << 62, 1e18


def last_of_chat(tx: Tx, chat: int, limit: int, before: int | None = None) -> Sequence[int]:
    """The runs of a chat that ended last, before that one if it is named; first of all those that
    have not ended. It reads no more of them, however many there are."""
    moment = None if before is None else tx.scalar(_BEFORE, {"run_id": before})
    asked = {"chat_id": chat, "at_most": limit}
    live: list[int] = []
    if moment is None:
        waiting = tx.scalars(_WAITING_OF_CHAT, asked)
        live = [*waiting, *tx.scalars(_HEAD_OF_CHAT, {"chat_id": chat})]
    until = {"run_id": before or _LAST, "moment": _LATEST if moment is None else moment}
    return [*live, *tx.scalars(_LAST_OF_CHAT, asked | until)][:limit]


_NEWEST = sa.select(sa.func.max(runs.c.id))


def newest_run(tx: Tx) -> int:
    """The id of the newest run; 0 where there is none."""
    return int(tx.scalar(_NEWEST) or 0)


def run_line(tx: Tx, run: int, lease_seconds: float) -> RunLine | None:
    """One run, or None."""
    return next(iter(_lines(tx, _ONE, run_id=run, lease_seconds=lease_seconds)), None)


_LAST_ENDED = (
    sa.select(runs.c.id, runs.c.ending)
    .where(runs.c.chat == CHAT_ID, is_in(runs.c.state, RunState.ENDED))
    .order_by(runs.c.ended_at.desc(), runs.c.id.desc())
    .limit(AT_MOST)
)


def last_ended(tx: Tx, chat: int, limit: int) -> Sequence[tuple[int, Ending]]:
    """The runs of a chat that ended last, each with how it did, the last one first."""
    found = tx.execute(_LAST_ENDED, {"chat_id": chat, "at_most": limit})
    return [(row.id, Ending(row.ending)) for row in found]


_REQUESTS = (
    sa.select(inbound.c.run, inbound.c.request_id)
    .where(among(inbound.c.run, "run_ids"))
    .order_by(inbound.c.id)
)


def _lines(tx: Tx, question: sa.Select[tuple[object, ...]], **values: object) -> list[RunLine]:
    lines = _LINE.all(tx.execute(question, values))
    names: dict[int, list[str]] = {line.id: [] for line in lines}
    for row in tx.execute(_REQUESTS, {"run_ids": list(names)}):
        names[row.run].append(row.request_id)
    return [
        replace(
            line,
            requests=tuple(names[line.id]),
            request_id=line.request_id or next(iter(names[line.id]), ""),
        )
        for line in lines
    ]


_PENDING_IN_ACCOUNT = sa.select(
    sa.or_(
        *(sa.exists(sa.select(1).where(runs.c.account == ACCOUNT_ID, share)) for share in OPEN),
        sa.exists(
            sa.select(1).where(
                outbox.c.account == ACCOUNT_ID,
                is_in(outbox.c.watched, Watched.DUE, Watched.LEAVING),
            )
        ),
    )
)


def pending_in_account(tx: Tx, account: int) -> bool:
    """Tell whether any run or standalone message of this account is not at its end."""
    return bool(tx.scalar(_PENDING_IN_ACCOUNT, {"account_id": account}))
