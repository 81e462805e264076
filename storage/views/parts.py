"""Parts and the course of a run, read for operators. Nothing here moves a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from bot.domain.delivery import PartState
from bot.domain.message import ChannelName
from bot.domain.reply import PartKind
from storage.engine.clock import now
from storage.engine.tx import Tx
from storage.schema.tables import (
    accounts,
    chats,
    events,
    inbound,
    outbox,
    payloads,
    receipts,
    replies,
    runs,
    steps,
)


@dataclass(frozen=True, slots=True)
class PartLine:
    """One outgoing message as operators see it. `since` in seconds since its last change."""

    id: int
    run: int | None
    chat: int
    channel: ChannelName
    address: str
    kind: PartKind
    part: int
    state: PartState
    receipt: str | None
    attempts: int
    error: str
    code: str
    provider_status: str
    not_before: float
    since: float
    text: str


@dataclass(frozen=True, slots=True)
class PartFilter:
    """Which parts are asked for; empty fields exclude nothing. `before` is a part's id."""

    states: tuple[PartState, ...] = ()
    kinds: tuple[PartKind, ...] = ()
    runs: tuple[int, ...] = ()
    chats: tuple[int, ...] = ()
    error: str = ""
    before: int | None = None
    limit: int = 50


def parts_listed(tx: Tx, wanted: PartFilter) -> Sequence[PartLine]:
    """The parts that match, newest first."""
    question = (
        select(
            outbox.c.id,
            outbox.c.run,
            outbox.c.chat,
            accounts.c.channel,
            chats.c.address,
            outbox.c.kind,
            outbox.c.part,
            outbox.c.state,
            outbox.c.receipt,
            outbox.c.attempts,
            outbox.c.error,
            outbox.c.code,
            outbox.c.provider_status,
            outbox.c.not_before,
            (now - outbox.c.started_at).label("since_start"),
            (now - outbox.c.created_at).label("since_made"),
            outbox.c.text,
        )
        .join(chats, chats.c.id == outbox.c.chat)
        .join(accounts, accounts.c.id == outbox.c.account)
        .where(*_conditions(wanted))
        .order_by(outbox.c.id.desc())
        .limit(wanted.limit)
    )
    return [_line(row._asdict()) for row in tx.execute(question)]


def _line(row: Mapping[str, Any]) -> PartLine:
    values = dict(row)
    begun, made = values.pop("since_start"), values.pop("since_made")
    values["since"] = min(begun, made)
    values["channel"] = ChannelName(row["channel"])
    values["kind"] = PartKind(row["kind"])
    values["state"] = PartState(row["state"])
    return PartLine(**values)


def _conditions(wanted: PartFilter) -> list[Any]:
    conditions: list[Any] = []
    if wanted.states:
        conditions.append(outbox.c.state.in_([s.value for s in wanted.states]))
    if wanted.kinds:
        conditions.append(outbox.c.kind.in_([k.value for k in wanted.kinds]))
    if wanted.runs:
        conditions.append(outbox.c.run.in_(wanted.runs))
    if wanted.chats:
        conditions.append(outbox.c.chat.in_(wanted.chats))
    if wanted.error:
        conditions.append(outbox.c.error.icontains(wanted.error, autoescape=True))
    if wanted.before is not None:
        conditions.append(outbox.c.id < wanted.before)
    return conditions


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to a run. `at` in epoch seconds; `text` is what somebody wrote,
    shown only on request."""

    at: float
    who: str
    what: str
    detail: str = ""
    text: str = ""


def timeline(tx: Tx, run: int) -> Sequence[Moment]:
    """What happened to a run, in order: deliveries, claims, steps, parts, events."""
    moments = [
        *_messages(tx, run),
        *_life(tx, run),
        *_steps(tx, run),
        *_parts(tx, run),
        *_events(tx, run),
    ]
    return sorted(moments, key=lambda moment: moment.at)


def _messages(tx: Tx, run: int) -> Iterator[Moment]:
    for row in tx.execute(select(inbound).where(inbound.c.run == run)):
        times = "" if row.deliveries == 1 else f", delivered {row.deliveries} times"
        detail = f"{row.request_id} ({row.kind}{times})"
        yield Moment(row.received_at, "person", "message recorded", detail, row.text)
        if row.edited_at is not None:
            yield Moment(row.edited_at, "person", "message edited", row.request_id)


def _life(tx: Tx, run: int) -> Iterator[Moment]:
    row = tx.execute(select(runs).where(runs.c.id == run)).one()
    yield Moment(row.created_at, "intake", "run made")
    if row.claimed_at is not None:
        times = f"attempt {row.attempts}, failures {row.failures}, deaths {row.deaths}"
        yield Moment(row.claimed_at, "worker", "last claimed", times)
    stored = tx.execute(select(replies).where(replies.c.run == run)).first()
    if stored is not None:
        said = f"attempt {stored.attempt}, {len(stored.text)} characters"
        yield Moment(stored.stored_at, "agent", "reply stored", said, stored.text)
    if row.ended_at is not None:
        yield Moment(row.ended_at, "run", f"ended: {row.ending}", row.detail)


def _steps(tx: Tx, run: int) -> Iterator[Moment]:
    for row in tx.execute(select(steps).where(steps.c.run == run)):
        safe = "safe to repeat" if row.safe else "not safe to repeat"
        yield Moment(row.started_at, "agent", f"step {row.key} began", safe)
        if row.done_at is not None:
            yield Moment(row.done_at, "agent", f"step {row.key} done", "", row.result)


def _parts(tx: Tx, run: int) -> Iterator[Moment]:
    for row in tx.execute(select(outbox).where(outbox.c.run == run)):
        name = f"{row.kind} {row.part} (part {row.id})"
        yield Moment(row.created_at, "outbox", f"{name} stored", "", row.text)
        if row.attempts:
            times = f"attempt {row.attempts}"
            begun = max(row.started_at, row.created_at)
            yield Moment(begun, "outbox", f"{name} sending", times)
        if row.sent_at is None:
            due = f", due again at {row.not_before:.0f}" if row.not_before > row.created_at else ""
            said = " ".join(filter(None, (row.error, row.code)))
            if row.attempts:
                yield Moment(row.started_at, "outbox", f"{name} is {row.state}", said + due)
        elif row.provider_status:
            status = f"the provider says {row.provider_status}"
            yield Moment(row.sent_at, "provider", f"{name} is {row.state}", status)
    seen = select(receipts).join(outbox, outbox.c.id == receipts.c.outbox)
    for row in tx.execute(seen.where(outbox.c.run == run)):
        yield Moment(row.at, "provider", f"receipt {row.receipt}", f"part {row.outbox}")


def _events(tx: Tx, run: int) -> Iterator[Moment]:
    for row in tx.execute(select(events).where(events.c.run == run)):
        yield Moment(row.at, row.who, row.what, row.why)


def chat_events(tx: Tx, chat: int, limit: int) -> Sequence[Moment]:
    """The newest events of a chat, oldest of them first."""
    newest = select(events).where(events.c.chat == chat).order_by(events.c.id.desc()).limit(limit)
    rows = reversed(tx.execute(newest).all())
    return [Moment(row.at, row.who, row.what, row.why) for row in rows]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A payload that was acknowledged and can't be parsed. `age` in seconds."""

    id: int
    channel: ChannelName
    age: float
    error: str
    size: int
    body: str


def dead_letters(tx: Tx, limit: int, only: int | None = None) -> Sequence[DeadLetter]:
    """Kept payloads that nobody could parse, newest first."""
    question = (
        select(payloads, accounts.c.channel, (now - payloads.c.received_at).label("age"))
        .join(accounts, accounts.c.id == payloads.c.account)
        .where(payloads.c.error.is_not(None))
        .order_by(payloads.c.id.desc())
        .limit(limit)
    )
    if only is not None:
        question = question.where(payloads.c.id == only)
    return [
        DeadLetter(
            row.id, ChannelName(row.channel), row.age, row.error, len(row.body.encode()), row.body
        )
        for row in tx.execute(question)
    ]
