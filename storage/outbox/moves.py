"""The moves of a part: one outgoing message and what became of it.

    store     ->  pending                        (store_parts, post)
    pending   ->  sending                        (mark_sending, standalone.claim)
    sending   ->  sent                           (receive; whatever the fence)
    sending   ->  pending | refused | uncertain  (not_sent, refuse, doubt)
    uncertain ->  pending                        (resend: asked for, or after the last look)
    sent      ->  delivered -> read              (late.confirm; forward only)
    pending   ->  dropped                        (drop_pending, drop_notice)

A part of a running run moves only under that run's claim (`runs.hold` locks the run first). A
standalone part (a notice, an operator's words) is claimed by itself. A receipt is a fact: it counts
whoever holds the run by now, and a second one for a part is kept and reported: a double.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from sqlalchemy import BigInteger, Update, bindparam, select, update

from bot.domain.delivery import ARRIVED, PartState, Scope
from bot.domain.reply import PartBody, PartKind
from bot.domain.run import Claim
from bot.domain.verdict import PartFacts
from storage.engine.clock import now
from storage.engine.insert import InsertOrSkip
from storage.engine.literals import is_in, word
from storage.engine.tx import Row, Tx
from storage.schema.tables import outbox, receipts


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
    standalone: bool
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


COLUMNS = (
    outbox.c.id,
    outbox.c.account,
    outbox.c.chat,
    outbox.c.run,
    outbox.c.kind,
    outbox.c.part,
    outbox.c.state,
    outbox.c.standalone,
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


def part_of(row: Row) -> Part:
    """A row of COLUMNS."""
    return Part(
        id=row.id,
        account=row.account,
        chat=row.chat,
        run=row.run,
        kind=PartKind(row.kind),
        number=row.part,
        state=PartState(row.state),
        standalone=row.standalone,
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


_STORE_PART = InsertOrSkip(outbox, *COLUMNS, created_at=now)
_STORE_BEGUN = InsertOrSkip(outbox, *COLUMNS, created_at=now, started_at=now)
_POST = InsertOrSkip(outbox, outbox.c.id, created_at=now)
_NEW_RECEIPT = InsertOrSkip(receipts, receipts.c.outbox, at=now)


@dataclass(frozen=True, slots=True)
class Address:
    """Which chat, account and run a new part belongs to; `run` is None for free words."""

    account: int
    chat: int
    run: int | None


def store_parts(
    tx: Tx,
    to: Address,
    kind: PartKind,
    bodies: Sequence[PartBody],
    first_by: int | None = None,
) -> Sequence[Part]:
    """Insert a run's parts, pending; the first one already `sending` for holder `first_by`.
    Parts that are there stay as they are: a commit whose answer was lost is made once more."""
    stored = []
    for number, body in enumerate(bodies, start=1):
        begun = first_by if number == 1 else None
        values = {
            "account": to.account,
            "chat": to.chat,
            "run": to.run,
            "kind": kind.value,
            "part": number,
            "standalone": False,
            "text": body.text,
            "wire": body.wire,
            "state": PartState.PENDING.value if begun is None else PartState.SENDING.value,
            "holder": begun,
            "attempts": 0 if begun is None else 1,
        }
        store = _STORE_PART if begun is None else _STORE_BEGUN
        row = store.row(tx, values)
        if row is None:
            return [part for part in of_run(tx, to.run or 0) if part.kind is kind]
        stored.append(part_of(row))
    return stored


class Notice(IntEnum):
    """The part numbers of a run's notices: each is said at most once, by a unique key."""

    STILL_WORKING = 1
    UNCERTAIN = 2
    TOO_OLD = 3
    RETRIED = 4


def post(tx: Tx, to: Address, kind: PartKind, body: PartBody, number: int = 1) -> int | None:
    """Put a standalone message into the outbox: a notice or an operator's words. Returns its id,
    or None when the run has said this notice before."""
    values: dict[str, object] = {
        "account": to.account,
        "chat": to.chat,
        "run": to.run,
        "kind": kind.value,
        "part": number,
        "state": PartState.PENDING.value,
        "standalone": True,
        "text": body.text,
        "wire": body.wire,
    }
    return _POST.run(tx, values)


_OF_RUN_ANY = (
    select(*COLUMNS)
    .where(outbox.c.run == bindparam("of"), is_in(outbox.c.kind, PartKind.REPLY, PartKind.APOLOGY))
    .order_by(outbox.c.part)
)
_OF_RUN = _OF_RUN_ANY.where(~outbox.c.standalone)
_GET = select(*COLUMNS).where(outbox.c.id == bindparam("of"))


def of_run(tx: Tx, run: int) -> Sequence[Part]:
    """The parts of the run's reply or apology, in order."""
    return [part_of(row) for row in tx.execute(_OF_RUN, {"of": run})]


def of_run_any(tx: Tx, run: int) -> Sequence[Part]:
    """The parts of the run's answer, those that go out by themselves by now among them."""
    return [part_of(row) for row in tx.execute(_OF_RUN_ANY, {"of": run})]


def get(tx: Tx, part: int) -> Part | None:
    """One part, or None."""
    row = tx.execute(_GET, {"of": part}).first()
    return None if row is None else part_of(row)


BEGUN: dict[str, Any] = {
    "state": word(PartState.SENDING),
    "holder": bindparam("me", type_=BigInteger),
    "fence": outbox.c.fence + 1,
    "attempts": outbox.c.attempts + 1,
    "started_at": now,
}
"""pending -> sending: one more attempt, committed before the provider is called."""

_MARK_SENDING = (
    update(outbox)
    .where(
        outbox.c.id == bindparam("of"),
        outbox.c.run == bindparam("of_run"),
        is_in(outbox.c.state, PartState.PENDING),
        ~outbox.c.standalone,
    )
    .values(**BEGUN)
    .returning(*COLUMNS)
)


def mark_sending(tx: Tx, claim: Claim, part: int) -> Part | None:
    """pending -> sending, for a part of a run that is held (`runs.hold`). None: the part moved
    on."""
    row = tx.execute(_MARK_SENDING, {"of": part, "of_run": claim.run, "me": claim.holder}).first()
    return None if row is None else part_of(row)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to send one part: what an outcome is written on."""

    part: int
    number: int


_RECEIVE = (
    update(outbox)
    .where(
        outbox.c.id == bindparam("of"),
        outbox.c.state.not_in([word(state) for state in sorted(ARRIVED)]),
    )
    .values(
        state=word(PartState.SENT),
        holder=None,
        receipt=bindparam("named"),
        sent_at=now,
        error="",
        code="",
        scope=None,
    )
)


def receive(tx: Tx, attempt: Attempt, receipt: str) -> bool:
    """Any unfinished state -> sent, whatever the fence. A receipt that is known changes
    nothing. False: it is new for a part that had arrived, so the person has this part twice."""
    values: dict[str, object] = {
        "outbox": attempt.part,
        "receipt": receipt,
        "attempt": attempt.number,
    }
    if _NEW_RECEIPT.run(tx, values) is None:
        return True
    return tx.execute(_RECEIVE, {"of": attempt.part, "named": receipt}).rowcount == 1


_ATTEMPT = update(outbox).where(
    outbox.c.id == bindparam("of"),
    outbox.c.attempts == bindparam("try"),
    is_in(outbox.c.state, PartState.SENDING),
)
_TOLD: dict[str, Any] = {
    "holder": None,
    "error": bindparam("said"),
    "code": bindparam("by_code"),
}
_NOT_SENT = _ATTEMPT.values(
    **_TOLD, state=word(PartState.PENDING), not_before=now + bindparam("wait")
)
_REFUSE = _ATTEMPT.values(**_TOLD, state=word(PartState.REFUSED), scope=bindparam("about"))
_DOUBT = _ATTEMPT.values(**_TOLD, state=word(PartState.UNCERTAIN))


def _told(tx: Tx, move: Update, attempt: Attempt, error: str, code: str, **values: object) -> bool:
    values |= {"of": attempt.part, "try": attempt.number, "said": error, "by_code": code}
    return tx.execute(move, values).rowcount == 1


def not_sent(tx: Tx, attempt: Attempt, wait: float, error: str, code: str) -> bool:
    """sending -> pending: proven not to have left; due again in `wait` seconds."""
    return _told(tx, _NOT_SENT, attempt, error, code, wait=wait)


def refuse(tx: Tx, attempt: Attempt, scope: Scope, error: str, code: str) -> bool:
    """sending -> refused, for ever."""
    return _told(tx, _REFUSE, attempt, error, code, about=scope.value)


def doubt(tx: Tx, attempt: Attempt, error: str, code: str = "") -> bool:
    """sending -> uncertain: it may have arrived."""
    return _told(tx, _DOUBT, attempt, error, code)


def looked(tx: Tx, part: int, attempts: int) -> bool:
    """One more look at the provider's list found nothing."""
    move = (
        update(outbox)
        .where(outbox.c.id == part, outbox.c.state == "uncertain", outbox.c.attempts == attempts)
        .values(looks=outbox.c.looks + 1)
    )
    return tx.execute(move).rowcount == 1


def resend(tx: Tx, part: int, attempts: int, *, standalone: bool = False) -> bool:
    """uncertain | refused | dropped -> pending, on its own row: the next attempt has a new
    number. With `standalone` it goes out by itself, since its run has ended."""
    states = ("uncertain", "refused", "dropped") if standalone else ("uncertain", "refused")
    move = (
        update(outbox)
        .where(outbox.c.id == part, outbox.c.state.in_(states), outbox.c.attempts == attempts)
        .values(
            state=PartState.PENDING.value,
            resends=outbox.c.resends + 1,
            looks=0,
            not_before=0.0,
            scope=None,
            standalone=standalone,
        )
    )
    return tx.execute(move).rowcount == 1


_DROP_PENDING = (
    update(outbox)
    .where(
        outbox.c.run == bindparam("of"),
        is_in(outbox.c.state, PartState.PENDING),
        ~outbox.c.standalone,
    )
    .values(state=word(PartState.DROPPED))
)


def drop_pending(tx: Tx, run: int) -> int:
    """pending -> dropped, for what an ended run has not begun to send."""
    return tx.execute(_DROP_PENDING, {"of": run}).rowcount


def drop_notice(tx: Tx, run: int, notice: Notice) -> bool:
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
