"""The moves of a part: one outgoing message and what became of it.

    store     ->  pending                        (store_reply, store_apology, post)
    pending   ->  sending                        (mark_sending, claim_loose)
    sending   ->  sent                           (receive; whatever the fence)
    sending   ->  pending | refused | uncertain  (not_sent, refuse, doubt)
    uncertain ->  pending                        (resend: asked for, or after the last look)
    sent      ->  delivered -> read              (witness; forward only)
    pending   ->  dropped                        (drop_pending, drop_notice)

A part of a running run moves only under that run's grip (`runs.hold` locks the run first).
A loose part (a notice, an operator's words) is claimed by itself. A receipt is a fact: it is
written on (part, attempt) whoever holds the run by now, and a second receipt for one part is
kept and reported, because it is a double.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from sqlalchemy import (
    Connection,
    Row,
    Select,
    and_,
    case,
    exists,
    insert,
    or_,
    select,
    true,
    update,
)

from bot.domain.delivery import ARRIVED, PartState, Scope
from bot.domain.reply import PartBody, PartKind
from bot.domain.run import Grip
from bot.domain.verdict import PartFacts
from storage import holders as holder_moves
from storage.clock import now
from storage.dialect import insert_or_skip
from storage.tables import accounts, chats, holders, outbox, receipts, replies, runs

_RUN_KINDS = (PartKind.REPLY.value, PartKind.APOLOGY.value)


@dataclass(frozen=True, slots=True)
class Part:
    """One row of the outbox, with what a send needs. Times in epoch seconds."""

    id: int
    account: int
    chat: int
    run: int | None
    kind: PartKind
    number: int
    state: PartState
    loose: bool
    holder: int | None
    attempts: int
    resends: int
    looks: int
    not_before: float
    started_at: float
    created_at: float
    confirmed: bool
    scope: Scope | None
    error: str
    receipt: str | None
    body: PartBody

    @property
    def facts(self) -> PartFacts:
        """The part as the verdict reads it."""
        return PartFacts(
            id=self.id,
            number=self.number,
            state=self.state,
            attempts=self.attempts,
            resends=self.resends,
            looks=self.looks,
            not_before=self.not_before,
            started_at=self.started_at,
            confirmed=self.confirmed,
            scope=self.scope,
            error=self.error,
        )


_COLUMNS = (
    outbox.c.id,
    outbox.c.account,
    outbox.c.chat,
    outbox.c.run,
    outbox.c.kind,
    outbox.c.part,
    outbox.c.state,
    outbox.c.loose,
    outbox.c.holder,
    outbox.c.attempts,
    outbox.c.resends,
    outbox.c.looks,
    outbox.c.not_before,
    outbox.c.started_at,
    outbox.c.created_at,
    outbox.c.confirmed,
    outbox.c.scope,
    outbox.c.error,
    outbox.c.receipt,
    outbox.c.text,
    outbox.c.wire,
)


def _part(row: Row) -> Part:  # type: ignore[type-arg]
    return Part(
        id=row.id,
        account=row.account,
        chat=row.chat,
        run=row.run,
        kind=PartKind(row.kind),
        number=row.part,
        state=PartState(row.state),
        loose=row.loose,
        holder=row.holder,
        attempts=row.attempts,
        resends=row.resends,
        looks=row.looks,
        not_before=row.not_before,
        started_at=row.started_at,
        created_at=row.created_at,
        confirmed=row.confirmed,
        scope=None if row.scope is None else Scope(row.scope),
        error=row.error,
        receipt=row.receipt,
        body=PartBody(row.text, row.wire),
    )


def store_reply(tx: Connection, run: int, text: str, body: str, attempt: int) -> None:
    """Keep what the agent returned, once. The run is held."""
    tx.execute(
        insert(replies).values(run=run, text=text, body=body, attempt=attempt, stored_at=now)
    )


def stored_reply(tx: Connection, run: int) -> tuple[str, str] | None:
    """(text, body) of the run's reply, or None."""
    row = tx.execute(select(replies.c.text, replies.c.body).where(replies.c.run == run)).first()
    return None if row is None else (row.text, row.body)


@dataclass(frozen=True, slots=True)
class Address:
    """Which chat, account and run a new part belongs to; `run` is None for free words."""

    account: int
    chat: int
    run: int | None


def store_parts(
    tx: Connection,
    to: Address,
    kind: PartKind,
    bodies: Sequence[PartBody],
    first_by: int | None = None,
) -> Sequence[Part]:
    """Insert a run's parts, pending; the first one already `sending` for holder `first_by`."""
    rows = []
    for number, body in enumerate(bodies, start=1):
        begun = first_by if number == 1 else None
        values = {
            "account": to.account,
            "chat": to.chat,
            "run": to.run,
            "kind": kind.value,
            "part": number,
            "loose": False,
            "created_at": now,
            "text": body.text,
            "wire": body.wire,
            "state": PartState.PENDING.value if begun is None else PartState.SENDING.value,
            "holder": begun,
            "attempts": 0 if begun is None else 1,
            "started_at": 0.0 if begun is None else now,
        }
        rows.append(tx.execute(insert(outbox).values(**values).returning(*_COLUMNS)).one())
    return [_part(row) for row in rows]


class Notice(IntEnum):
    """The part numbers of a run's notices: each is said at most once, by a unique key."""

    STILL_WORKING = 1
    UNCERTAIN = 2
    TOO_OLD = 3
    RETRIED = 4


def post(
    tx: Connection, to: Address, kind: PartKind, body: PartBody, number: int = 1
) -> int | None:
    """Put a loose message into the outbox: a notice or an operator's words. Returns its id,
    or None when the run has said this notice before."""
    values: dict[str, object] = {
        "account": to.account,
        "chat": to.chat,
        "run": to.run,
        "kind": kind.value,
        "part": number,
        "state": PartState.PENDING.value,
        "loose": True,
        "created_at": now,
        "text": body.text,
        "wire": body.wire,
    }
    return tx.execute(insert_or_skip(tx, outbox, values).returning(outbox.c.id)).scalar()


def of_run(tx: Connection, run: int) -> Sequence[Part]:
    """The parts of the run's reply or apology, in order."""
    question = (
        select(*_COLUMNS)
        .where(outbox.c.run == run, outbox.c.kind.in_(_RUN_KINDS), ~outbox.c.loose)
        .order_by(outbox.c.part)
    )
    return [_part(row) for row in tx.execute(question)]


def of_run_any(tx: Connection, run: int) -> Sequence[Part]:
    """The parts of the run's answer, those that go out by themselves by now among them."""
    question = (
        select(*_COLUMNS)
        .where(outbox.c.run == run, outbox.c.kind.in_(_RUN_KINDS))
        .order_by(outbox.c.part)
    )
    return [_part(row) for row in tx.execute(question)]


def get(tx: Connection, part: int) -> Part | None:
    """One part, or None."""
    row = tx.execute(select(*_COLUMNS).where(outbox.c.id == part)).first()
    return None if row is None else _part(row)


def mark_sending(tx: Connection, grip: Grip, part: int) -> Part | None:
    """pending -> sending, for a part of a run that is held. None: the part moved on."""
    move = (
        update(outbox)
        .where(outbox.c.id == part, outbox.c.run == grip.run, outbox.c.state == "pending")
        .values(
            state=PartState.SENDING.value,
            holder=grip.holder,
            fence=outbox.c.fence + 1,
            attempts=outbox.c.attempts + 1,
            started_at=now,
        )
        .returning(*_COLUMNS)
    )
    row = tx.execute(move).first()
    return None if row is None else _part(row)


def _able(mine: Sequence[int]) -> Select[tuple[int]]:
    """Those of the accounts `mine` that can send."""
    return select(accounts.c.id).where(accounts.c.id.in_(mine), accounts.c.down_since.is_(None))


def due_loose(tx: Connection, mine: Sequence[int], limit: int) -> Sequence[Part]:
    """Loose parts that may go now: due, not behind a part of their chat that is on its way or
    came before, in a chat that the platform does not limit."""
    busy = outbox.alias("busy")
    on_its_way = exists(
        select(1).where(busy.c.chat == outbox.c.chat, busy.c.state == "sending")
    ).correlate(outbox)
    earlier = outbox.alias("earlier")
    behind = exists(
        select(1).where(
            earlier.c.chat == outbox.c.chat,
            earlier.c.id < outbox.c.id,
            earlier.c.loose == true(),
            earlier.c.state == "pending",
        )
    ).correlate(outbox)
    question = (
        select(*_COLUMNS)
        .join(chats, chats.c.id == outbox.c.chat)
        .where(
            outbox.c.loose == true(),
            outbox.c.state == "pending",
            outbox.c.not_before <= now,
            chats.c.not_before <= now,
            outbox.c.account.in_(_able(mine)),
            ~on_its_way,
            ~behind,
        )
        .order_by(outbox.c.not_before, outbox.c.id)
        .limit(limit)
    )
    return [_part(row) for row in tx.execute(question)]


def claim_loose(tx: Connection, part: int, holder: int, lease_seconds: float) -> Part | None:
    """pending -> sending, for a loose part. None: somebody else has it."""
    move = (
        update(outbox)
        .where(
            outbox.c.id == part,
            outbox.c.loose == true(),
            outbox.c.state == "pending",
            holder_moves.alive(holder, lease_seconds),
        )
        .values(
            state=PartState.SENDING.value,
            holder=holder,
            fence=outbox.c.fence + 1,
            attempts=outbox.c.attempts + 1,
            started_at=now,
        )
        .returning(*_COLUMNS)
    )
    row = tx.execute(move).first()
    return None if row is None else _part(row)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to send one part: what an outcome is written on."""

    part: int
    number: int


def receive(tx: Connection, attempt: Attempt, receipt: str) -> bool:
    """Any unfinished state -> sent, whatever the fence. A receipt that is known changes
    nothing. False: it is new for a part that had arrived, so the person has this part twice."""
    values: dict[str, object] = {
        "outbox": attempt.part,
        "receipt": receipt,
        "attempt": attempt.number,
        "at": now,
    }
    new = insert_or_skip(tx, receipts, values).returning(receipts.c.outbox)
    if tx.execute(new).first() is None:
        return True
    move = (
        update(outbox)
        .where(
            outbox.c.id == attempt.part,
            outbox.c.state.in_(("sending", "uncertain", "pending", "refused", "dropped")),
        )
        .values(
            state=PartState.SENT.value,
            holder=None,
            receipt=receipt,
            sent_at=now,
            error="",
            code="",
            scope=None,
        )
    )
    return tx.execute(move).rowcount == 1


def _attempt(attempt: Attempt):  # type: ignore[no-untyped-def]
    return and_(
        outbox.c.id == attempt.part,
        outbox.c.attempts == attempt.number,
        outbox.c.state == "sending",
    )


def not_sent(tx: Connection, attempt: Attempt, wait: float, error: str, code: str) -> bool:
    """sending -> pending: proven not to have left; due again in `wait` seconds."""
    move = (
        update(outbox)
        .where(_attempt(attempt))
        .values(
            state=PartState.PENDING.value,
            holder=None,
            not_before=now + wait,
            error=error,
            code=code,
        )
    )
    return tx.execute(move).rowcount == 1


def refuse(tx: Connection, attempt: Attempt, scope: Scope, error: str, code: str) -> bool:
    """sending -> refused, for ever."""
    move = (
        update(outbox)
        .where(_attempt(attempt))
        .values(
            state=PartState.REFUSED.value,
            holder=None,
            scope=scope.value,
            error=error,
            code=code,
        )
    )
    return tx.execute(move).rowcount == 1


def doubt(tx: Connection, attempt: Attempt, error: str, code: str = "") -> bool:
    """sending -> uncertain: it may have arrived."""
    move = (
        update(outbox)
        .where(_attempt(attempt))
        .values(state=PartState.UNCERTAIN.value, holder=None, error=error, code=code)
    )
    return tx.execute(move).rowcount == 1


def doubt_orphans(tx: Connection) -> Sequence[int]:
    """sending -> uncertain, for parts that a dead holder left and no running run looks after."""
    gone = exists(
        select(1).where(holders.c.id == outbox.c.holder, holders.c.gone_at.is_not(None))
    ).correlate(outbox)
    owned = exists(
        select(1).where(runs.c.id == outbox.c.run, runs.c.state.in_(("ready", "running")))
    ).correlate(outbox)
    move = (
        update(outbox)
        .where(outbox.c.state == "sending", gone, or_(outbox.c.loose == true(), ~owned))
        .values(
            state=PartState.UNCERTAIN.value,
            holder=None,
            error="the process died while it was being sent",
        )
        .returning(outbox.c.id)
    )
    return tx.scalars(move).all()


def looked(tx: Connection, part: int, attempts: int) -> bool:
    """One more look at the provider's list found nothing."""
    move = (
        update(outbox)
        .where(outbox.c.id == part, outbox.c.state == "uncertain", outbox.c.attempts == attempts)
        .values(looks=outbox.c.looks + 1)
    )
    return tx.execute(move).rowcount == 1


def resend(tx: Connection, part: int, attempts: int, *, loose: bool = False) -> bool:
    """uncertain | refused | dropped -> pending, on its own row: the next attempt has a new
    number. With `loose` it goes out by itself, since its run has ended."""
    states = ("uncertain", "refused", "dropped") if loose else ("uncertain", "refused")
    move = (
        update(outbox)
        .where(outbox.c.id == part, outbox.c.state.in_(states), outbox.c.attempts == attempts)
        .values(
            state=PartState.PENDING.value,
            resends=outbox.c.resends + 1,
            looks=0,
            not_before=0.0,
            scope=None,
            loose=loose,
        )
    )
    return tx.execute(move).rowcount == 1


def drop_pending(tx: Connection, run: int) -> int:
    """pending -> dropped, for what an ended run has not begun to send."""
    move = (
        update(outbox)
        .where(outbox.c.run == run, outbox.c.state == "pending", ~outbox.c.loose)
        .values(state=PartState.DROPPED.value)
    )
    return tx.execute(move).rowcount


def drop_notice(tx: Connection, run: int, notice: Notice) -> bool:
    """pending -> dropped, for a run's notice that is no longer true."""
    move = (
        update(outbox)
        .where(
            outbox.c.run == run,
            outbox.c.kind == PartKind.NOTICE.value,
            outbox.c.part == notice.value,
            outbox.c.state == "pending",
        )
        .values(state=PartState.DROPPED.value)
    )
    return tx.execute(move).rowcount == 1


_RANK = {"": 0, "queued": 0, "accepted": 0, "sending": 1, "sent": 2, "delivered": 3, "read": 4}


def witness(tx: Connection, part: Part, state: PartState, status: str) -> bool:
    """sent -> delivered -> read, forward only. False: nothing new."""
    behind = [s.value for s in ARRIVED if _RANK[s.value] < _RANK[state.value]]
    move = (
        update(outbox)
        .where(outbox.c.id == part.id, outbox.c.state.in_(behind))
        .values(state=state.value, provider_status=status, confirmed=True)
    )
    if tx.execute(move).rowcount == 1:
        return True
    confirm = (
        update(outbox)
        .where(outbox.c.id == part.id, outbox.c.state == state.value, ~outbox.c.confirmed)
        .values(provider_status=status, confirmed=True)
    )
    return tx.execute(confirm).rowcount == 1


def late_refusal(
    tx: Connection, part: int, scope: Scope, status: str, error: str, code: str
) -> bool:
    """sent -> refused: the platform took it and then could not bring it. The first code stays;
    what was delivered stays delivered."""
    move = (
        update(outbox)
        .where(outbox.c.id == part, outbox.c.state == "sent")
        .values(
            state=PartState.REFUSED.value,
            scope=scope.value,
            provider_status=status,
            confirmed=True,
            error=case((outbox.c.error == "", error), else_=outbox.c.error),
            code=case((outbox.c.code == "", code), else_=outbox.c.code),
        )
    )
    return tx.execute(move).rowcount == 1


def by_receipt(tx: Connection, account: int, receipt: str) -> Part | None:
    """The part that a provider's id names, or None."""
    row = tx.execute(
        select(*_COLUMNS).where(outbox.c.account == account, outbox.c.receipt == receipt)
    ).first()
    return None if row is None else _part(row)


def owned_receipts(tx: Connection, chat: int, but: int) -> frozenset[str]:
    """Receipts of the chat's other parts: a look-up must not adopt them."""
    question = (
        select(receipts.c.receipt)
        .join(outbox, outbox.c.id == receipts.c.outbox)
        .where(outbox.c.chat == chat, outbox.c.id != but)
        .order_by(receipts.c.at.desc())
        .limit(500)
    )
    return frozenset(tx.scalars(question))


def sending_by(tx: Connection, holder: int) -> Sequence[Part]:
    """The parts that this holder has begun to send and not heard of."""
    question = select(*_COLUMNS).where(outbox.c.holder == holder, outbox.c.state == "sending")
    return [_part(row) for row in tx.execute(question)]


def doubtful_loose(tx: Connection, account: int, looks: int, limit: int) -> Sequence[Part]:
    """Loose parts of this account that may have arrived and were looked for fewer than `looks`
    times, oldest first."""
    question = (
        select(*_COLUMNS)
        .where(
            outbox.c.state == "uncertain",
            outbox.c.loose == true(),
            outbox.c.account == account,
            outbox.c.looks < looks,
        )
        .order_by(outbox.c.id)
        .limit(limit)
    )
    return [_part(row) for row in tx.execute(question)]


def human_answered(tx: Connection, chat: int, after: float) -> bool:
    """Whether an operator's words reached the chat after this moment."""
    question = exists(
        select(1).where(
            outbox.c.chat == chat,
            outbox.c.kind == PartKind.OPERATOR.value,
            outbox.c.state.in_([s.value for s in ARRIVED]),
            outbox.c.sent_at > after,
        )
    )
    return bool(tx.scalar(select(question)))
