"""The moves that a platform's reports cause after it took a part.

Every move names the receipt that the platform spoke of: a report on an earlier message of a
part that was sent again says nothing about the later one.
"""

from __future__ import annotations

import sqlalchemy as sa

from bot.domain.decisions.retry import RETRY
from bot.domain.delivery import ARRIVED, DeliveryStatus, PartState, Scope
from bot.domain.reply import PartBody
from bot.domain.run import RunState
from storage.outbox.rows import IS_PART, REFUSED, SAID, SENT
from storage.schema.tables import outbox, runs
from storage.statements.binds import WAIT
from storage.statements.clock import now
from storage.statements.literals import is_in, word
from storage.statements.tx import Tx

_HAS_RECEIPT = outbox.c.receipt == sa.bindparam("receipt_id")
_STATUS = sa.bindparam("new_status", type_=sa.Text)

_BEHIND = {
    PartState.SENT: (),
    PartState.DELIVERED: (PartState.SENT, PartState.REFUSED, PartState.PENDING),
    PartState.READ: (PartState.SENT, PartState.DELIVERED, PartState.REFUSED, PartState.PENDING),
}
"""The states from which a report moves a part on; what was refused or is to be sent again arrived
after all."""


def _confirm_of(state: PartState, behind: tuple[PartState, ...]) -> sa.Update:
    first_report = sa.and_(is_in(outbox.c.state, state), ~outbox.c.confirmed)
    moves = sa.or_(first_report, is_in(outbox.c.state, *behind)) if behind else first_report
    return (
        sa.update(outbox)
        .where(IS_PART, _HAS_RECEIPT, moves)
        .values(
            state=word(state),
            provider_status=_STATUS,
            confirmed=sa.true(),
            scope=None,
            error="",
            code="",
        )
    )


_CONFIRM = {state: _confirm_of(state, behind) for state, behind in _BEHIND.items()}


def confirm(tx: Tx, part: int, receipt: str, state: PartState, status: str) -> bool:
    """sent -> delivered -> read, forward only; refused | pending -> delivered | read: it arrived
    after all. False: nothing new."""
    values = {"part_id": part, "receipt_id": receipt, "new_status": status}
    return tx.execute(_CONFIRM[state], values).rowcount == 1


_AWAITED = sa.exists(
    sa.select(1).where(
        runs.c.id == outbox.c.run, is_in(runs.c.state, RunState.READY), runs.c.replied == sa.true()
    )
).correlate(outbox)
_CONFIRM_SENT = {
    state: move.where(is_in(outbox.c.state, *sorted(ARRIVED))).returning(_AWAITED.label("awaited"))
    for state, move in _CONFIRM.items()
}


def confirm_sent(tx: Tx, part: int, status: DeliveryStatus) -> bool | None:
    """sent -> delivered -> read, forward only. Returns whether the part's run may wait for that;
    None: nothing moved."""
    assert status.state is not None
    values = {"part_id": part, "receipt_id": status.receipt, "new_status": status.provider_status}
    awaited: bool | None = tx.scalar(_CONFIRM_SENT[status.state], values)
    return awaited


_ERROR = sa.bindparam("new_error", type_=sa.Text)
_CODE = sa.bindparam("new_code", type_=sa.Text)
_REFUSE_SENT = (
    sa.update(outbox)
    .where(IS_PART, _HAS_RECEIPT, SENT)
    .values(
        state=word(PartState.REFUSED),
        scope=sa.bindparam("new_scope"),
        provider_status=_STATUS,
        confirmed=sa.true(),
        error=sa.case((outbox.c.error == "", _ERROR), else_=outbox.c.error),
        code=sa.case((outbox.c.code == "", _CODE), else_=outbox.c.code),
    )
)


def refuse_sent(
    tx: Tx, part: int, receipt: str, *, scope: Scope, status: str, error: str, code: str
) -> bool:
    """sent -> refused: the platform took it and then could not bring it. The first code stays;
    what was delivered stays delivered."""
    values = {
        "part_id": part,
        "receipt_id": receipt,
        "new_scope": scope.value,
        "new_status": status,
        "new_error": error,
        "new_code": code,
    }
    return tx.execute(_REFUSE_SENT, values).rowcount == 1


_SEND_AGAIN = (
    sa.update(outbox)
    .where(IS_PART, REFUSED, outbox.c.resends < RETRY.max_resends)
    .values(
        state=word(PartState.PENDING),
        resends=outbox.c.resends + 1,
        looks=0,
        not_before=now + WAIT,
        scope=None,
        confirmed=sa.false(),
        standalone=sa.bindparam("alone"),
        text=sa.func.coalesce(sa.bindparam("new_text", type_=sa.Text), outbox.c.text),
        wire=sa.func.coalesce(sa.bindparam("new_wire", type_=sa.Text), outbox.c.wire),
        reply=SAID,
    )
)


def send_again(
    tx: Tx, part: int, wait: float, *, standalone: bool, body: PartBody | None = None
) -> bool:
    """refused -> pending, due in `wait` seconds, with `body` in place of the old one if that
    is given. False: it moved on, or was sent again before. With `standalone` it goes out by
    itself."""
    values: dict[str, object] = {
        "part_id": part,
        "wait": wait,
        "alone": standalone,
        "new_text": None if body is None else body.text,
        "new_wire": None if body is None else body.wire,
    }
    return tx.execute(_SEND_AGAIN, values).rowcount == 1
