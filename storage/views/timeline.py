"""The course of a run or a chat, moment by moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import sqlalchemy as sa

from bot.domain.delivery import ARRIVED, PartState
from bot.domain.ending import Ending
from bot.domain.reply import PartKind
from storage.schema.tables import events, inbound, outbox, receipts, runs, steps
from storage.statements.tx import Tx


class Mark(Enum):
    """The kind of a moment: pictures are drawn by it."""

    MESSAGE = auto()
    MADE = auto()
    CLAIMED = auto()
    STEP_BEGAN = auto()
    STEP_DONE = auto()
    STORED = auto()
    SENDING = auto()
    ARRIVED = auto()
    WAITS = auto()
    """It is tried again later."""
    UNCERTAIN = auto()
    REFUSED = auto()
    DROPPED = auto()
    DIED = auto()
    """Its holder died, and what that held was released."""
    LET_GO = auto()
    """Its holder let it go alive."""
    FAILED = auto()
    ENDED = auto()
    NOTED = auto()
    """Any other deed in the audit log: an operator's, a platform's, a person's."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to a run. `at` in epoch seconds; `text` is what somebody wrote,
    shown only on request; `due` is when it is tried again, None where it is not. `thing` names
    the step or part that it happened to, the same for all its moments."""

    at: float
    who: str
    what: str
    detail: str = ""
    text: str = ""
    due: float | None = None
    mark: Mark = Mark.NOTED
    thing: str = ""


_OF_PART = {
    PartState.PENDING: Mark.WAITS,
    PartState.SENDING: Mark.SENDING,
    PartState.UNCERTAIN: Mark.UNCERTAIN,
    PartState.REFUSED: Mark.REFUSED,
    PartState.DROPPED: Mark.DROPPED,
    **dict.fromkeys(ARRIVED, Mark.ARRIVED),
}
_OF_EVENT = {
    "released": Mark.DIED,
    "given back": Mark.LET_GO,
    "put off": Mark.LET_GO,
    "failed": Mark.FAILED,
    **{f"ended {ending}": Mark.ENDED for ending in Ending},
}


_OF_RUN = sa.bindparam("run_id", type_=sa.BigInteger)
_MESSAGES = sa.select(inbound).where(inbound.c.run == _OF_RUN)
_RUN = sa.select(runs).where(runs.c.id == _OF_RUN)
_HEARD = sa.select(sa.func.min(inbound.c.received_at)).where(inbound.c.run == _OF_RUN)
_STEPS = sa.select(steps).where(steps.c.run == _OF_RUN)
_PARTS = sa.select(outbox).where(outbox.c.run == _OF_RUN)
_FURTHER = (
    sa.select(receipts)
    .join(outbox, outbox.c.id == receipts.c.outbox)
    .where(outbox.c.run == _OF_RUN, outbox.c.receipt.is_distinct_from(receipts.c.receipt))
)
_EVENTS = sa.select(events).where(events.c.run == _OF_RUN)


def timeline(tx: Tx, run: int) -> Sequence[Moment]:
    """The events of a run, in order. Of what has one time, the cause stands first."""
    told = (_messages, _moves, _steps, _parts, _end, _events)
    moments = [moment for tell in told for moment in tell(tx, run)]
    return sorted(moments, key=lambda moment: moment.at)


def _messages(tx: Tx, run: int) -> Iterator[Moment]:
    for row in tx.execute(_MESSAGES, {"run_id": run}):
        times = "" if row.deliveries == 1 else f", delivered {row.deliveries} times"
        detail = f"{row.request_id} ({row.kind}{times})"
        yield Moment(
            row.received_at, "person", "message recorded", detail, row.text, mark=Mark.MESSAGE
        )
        if row.edited_at is not None:
            yield Moment(
                row.edited_at, "person", "message edited", row.request_id, mark=Mark.MESSAGE
            )


def _moves(tx: Tx, run: int) -> Iterator[Moment]:
    row = tx.execute(_RUN, {"run_id": run}).one()
    # Intake writes the run first, in the transaction that records its first message.
    made = max(row.created_at, tx.scalars(_HEARD, {"run_id": run}).one() or 0.0)
    yield Moment(made, "intake", "run made", mark=Mark.MADE)
    if row.claimed_at is not None:
        times = f"attempt {row.attempts}, failures {row.failures}, deaths {row.deaths}"
        claimed = max(row.claimed_at, made)
        yield Moment(claimed, "worker", "last claimed", times, mark=Mark.CLAIMED)


def _end(tx: Tx, run: int) -> Iterator[Moment]:
    row = tx.execute(_RUN, {"run_id": run}).one()
    if row.ended_at is not None and row.handoff is not None:
        asked = f"{len(row.handoff)} characters"
        yield Moment(row.ended_at, "agent", "asked for a person", asked, row.handoff)
    if row.ended_at is not None:
        yield Moment(row.ended_at, "run", f"ended: {row.ending}", row.detail, mark=Mark.ENDED)


def _steps(tx: Tx, run: int) -> Iterator[Moment]:
    for row in tx.execute(_STEPS, {"run_id": run}):
        safe = "safe to repeat" if row.safe else "not safe to repeat"
        of, began = f"step {row.key}", Mark.STEP_BEGAN
        yield Moment(row.started_at, "agent", f"{of} began", safe, mark=began, thing=of)
        if row.done_at is not None:
            done = Mark.STEP_DONE
            yield Moment(row.done_at, "agent", f"{of} done", "", row.result, mark=done, thing=of)


def _parts(tx: Tx, run: int) -> Iterator[Moment]:
    for row in tx.execute(_PARTS, {"run_id": run}):
        name, of = f"{row.kind} {row.part} (part {row.id})", f"part {row.id}"
        became = _OF_PART[PartState(row.state)]
        if row.kind == PartKind.REPLY and row.part == 1:
            said = row.text if row.reply is None else row.reply
            long = f"{len(said)} characters"
            yield Moment(row.created_at, "agent", "reply stored", long, said, mark=Mark.STORED)
        yield Moment(
            row.created_at, "outbox", f"{name} stored", "", row.text, mark=Mark.STORED, thing=of
        )
        begun = max(row.started_at, row.created_at)
        if row.attempts:
            tried = f"attempt {row.attempts}"
            yield Moment(begun, "outbox", f"{name} sending", tried, mark=Mark.SENDING, thing=of)
        if row.sent_at is None and row.attempts:
            due = row.not_before if row.not_before > row.created_at else None
            error = row.error if row.code in row.error else f"{row.error} ({row.code})".strip()
            yield Moment(
                begun, "outbox", f"{name} is {row.state}", error, due=due, mark=became, thing=of
            )
        elif row.sent_at is not None and row.provider_status:
            status = f"the provider says {row.provider_status}"
            yield Moment(
                row.sent_at, "provider", f"{name} is {row.state}", status, mark=became, thing=of
            )
        if row.receipt is not None and row.sent_at is not None:
            receipt = f"receipt {row.receipt}"
            yield Moment(row.sent_at, "provider", receipt, of, mark=Mark.ARRIVED, thing=of)
    for row in tx.execute(_FURTHER, {"run_id": run}):
        receipt, of = f"receipt {row.receipt}", f"part {row.outbox}"
        yield Moment(row.at, "provider", receipt, of, mark=Mark.ARRIVED, thing=of)


def _events(tx: Tx, run: int) -> Iterator[Moment]:
    for row in tx.execute(_EVENTS, {"run_id": run}):
        yield Moment(row.at, row.who, row.what, row.why, mark=_OF_EVENT.get(row.what, Mark.NOTED))


def chat_events(tx: Tx, chat: int, limit: int) -> Sequence[Moment]:
    """The newest events of a chat, oldest of them first."""
    newest = (
        sa.select(events).where(events.c.chat == chat).order_by(events.c.id.desc()).limit(limit)
    )
    rows = reversed(tx.execute(newest).all())
    return [Moment(row.at, row.who, row.what, row.why) for row in rows]
