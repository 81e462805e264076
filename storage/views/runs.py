"""Read-only questions, for operators and for those who wait. Nothing here moves a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Select, exists, func, or_, select, true

from bot.domain.ending import Ending
from bot.domain.message import ChannelName
from bot.domain.run import RunState
from storage.engine.clock import now
from storage.engine.tx import Tx
from storage.holders import alive
from storage.schema.tables import accounts, chats, holders, inbound, outbox, runs


def pending_in_account(tx: Tx, account: int) -> bool:
    """Whether any run or standalone message of this account is not at its end."""
    live = exists(select(1).where(runs.c.account == account, runs.c.state != "ended"))
    standalone = exists(
        select(1).where(
            outbox.c.account == account,
            outbox.c.standalone == true(),
            outbox.c.state.in_(("pending", "sending")),
        )
    )
    return bool(tx.scalar(select(or_(live, standalone))))


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run as operators see it. `age` in seconds since it was made; times in epoch seconds.

    `requests` are the ids of all its messages; `holder` is the name of the process that has
    it, and `holder_alive` says whether that process may be believed alive.
    """

    id: int
    chat: int
    account: int
    channel: ChannelName
    address: str
    topic: str
    state: RunState
    ending: Ending | None
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
    deadline_at: float | None
    ended_at: float | None
    request_id: str
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are asked for; empty fields exclude nothing. `older` and `newer` are ages in
    seconds, `before` a run's id for the next page."""

    states: tuple[RunState, ...] = ()
    endings: tuple[Ending, ...] = ()
    channel: ChannelName | None = None
    chats: tuple[int, ...] = ()
    older: float | None = None
    newer: float | None = None
    error: str = ""
    before: int | None = None
    limit: int = 50

    @property
    def names_any(self) -> bool:
        """Whether anything is excluded, apart from the page."""
        return replace(self, before=None, limit=50) != RunFilter()


def _run_lines(lease_seconds: float) -> Select[Any]:
    return (
        select(
            runs.c.id,
            runs.c.chat,
            runs.c.account,
            accounts.c.channel,
            chats.c.address,
            chats.c.topic,
            runs.c.state,
            runs.c.ending,
            runs.c.detail,
            runs.c.set_aside,
            runs.c.attempts,
            runs.c.failures,
            runs.c.deaths,
            runs.c.replied,
            holders.c.name.label("holder"),
            alive(runs.c.holder, lease_seconds).label("holder_alive"),
            (now - runs.c.created_at).label("age"),
            runs.c.created_at,
            runs.c.not_before,
            runs.c.deadline_at,
            runs.c.ended_at,
            runs.c.request_id,
        )
        .join(chats, chats.c.id == runs.c.chat)
        .join(accounts, accounts.c.id == runs.c.account)
        .outerjoin(holders, holders.c.id == runs.c.holder)
    )


def _line(row: Mapping[str, Any]) -> RunLine:
    values = dict(row)
    values["channel"] = ChannelName(row["channel"])
    values["state"] = RunState(row["state"])
    values["ending"] = None if row["ending"] is None else Ending(row["ending"])
    values["set_aside"] = row["set_aside"] or ""
    values["holder"] = row["holder"] or ""
    values["holder_alive"] = bool(row["holder_alive"])
    return RunLine(**values)


def runs_listed(tx: Tx, wanted: RunFilter, lease_seconds: float) -> Sequence[RunLine]:
    """The runs that match, newest first."""
    question = _run_lines(lease_seconds).where(*_conditions(wanted))
    found = tx.execute(question.order_by(runs.c.id.desc()).limit(wanted.limit))
    return _with_requests(tx, [_line(row._asdict()) for row in found])


def _conditions(wanted: RunFilter) -> list[Any]:
    conditions: list[Any] = []
    if wanted.states:
        conditions.append(runs.c.state.in_([s.value for s in wanted.states]))
    if wanted.endings:
        conditions.append(runs.c.ending.in_([e.value for e in wanted.endings]))
    if wanted.channel is not None:
        conditions.append(accounts.c.channel == wanted.channel.value)
    if wanted.chats:
        conditions.append(runs.c.chat.in_(wanted.chats))
    if wanted.older is not None:
        conditions.append(runs.c.created_at <= now - wanted.older)
    if wanted.newer is not None:
        conditions.append(runs.c.created_at >= now - wanted.newer)
    if wanted.error:
        conditions.append(runs.c.detail.icontains(wanted.error, autoescape=True))
    if wanted.before is not None:
        conditions.append(runs.c.id < wanted.before)
    return conditions


def run_line(tx: Tx, run: int, lease_seconds: float) -> RunLine | None:
    """One run, or None."""
    row = tx.execute(_run_lines(lease_seconds).where(runs.c.id == run)).first()
    return None if row is None else _with_requests(tx, [_line(row._asdict())])[0]


def _with_requests(tx: Tx, lines: list[RunLine]) -> list[RunLine]:
    said = select(inbound.c.run, inbound.c.request_id).where(
        inbound.c.run.in_([line.id for line in lines])
    )
    names: dict[int, list[str]] = {}
    for row in tx.execute(said.order_by(inbound.c.received_at, inbound.c.id)):
        names.setdefault(row.run, []).append(row.request_id)
    return [
        replace(
            line,
            requests=tuple(names.get(line.id, ())),
            request_id=line.request_id or next(iter(names.get(line.id, ())), ""),
        )
        for line in lines
    ]


@dataclass(frozen=True, slots=True)
class ChatLine:
    """A chat as operators see it. Times in epoch seconds; `live` counts its unended runs."""

    id: int
    channel: ChannelName
    address: str
    topic: str
    kind: str
    name: str
    language: str
    last_inbound_at: float | None
    paused_until: float | None
    unreachable_since: float | None
    unreachable_reason: str | None
    opted_out_at: float | None
    not_before: float
    live: int


def chats_listed(
    tx: Tx,
    ids: Sequence[int] | None = None,
    *,
    paused: bool = False,
    unreachable: bool = False,
    limit: int = 50,
) -> Sequence[ChatLine]:
    """Chats, those that were heard last first."""
    live = (
        select(func.count())
        .where(runs.c.chat == chats.c.id, runs.c.state != "ended")
        .correlate(chats)
        .scalar_subquery()
        .label("live")
    )
    question = select(
        chats.c.id,
        accounts.c.channel,
        chats.c.address,
        chats.c.topic,
        chats.c.kind,
        chats.c.name,
        chats.c.language,
        chats.c.last_inbound_at,
        chats.c.paused_until,
        chats.c.unreachable_since,
        chats.c.unreachable_reason,
        chats.c.opted_out_at,
        chats.c.not_before,
        live,
    ).join(accounts, accounts.c.id == chats.c.account)
    if ids is not None:
        question = question.where(chats.c.id.in_(ids))
    if paused:
        question = question.where(chats.c.paused_until > now)
    if unreachable:
        question = question.where(chats.c.unreachable_since.is_not(None))
    rows = tx.execute(question.order_by(chats.c.last_inbound_at.desc(), chats.c.id).limit(limit))
    return [_chat_line(row._asdict()) for row in rows]


def _chat_line(row: Mapping[str, Any]) -> ChatLine:
    values = dict(row)
    values["channel"] = ChannelName(row["channel"])
    return ChatLine(**values)
