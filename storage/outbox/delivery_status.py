"""What a provider says of a part after it took it.

    sent               ->  delivered -> read     (confirm; forward only)
    refused | pending  ->  delivered | read      (confirm; it arrived after all)
    sent               ->  refused               (refuse)
    refused            ->  pending               (send_again; at most once)

Every move names the receipt that the provider spoke of: a word on an earlier message of a
part that was sent again says nothing about the later one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import case, exists, false, or_, select, true, update

from bot.domain.delivery import ARRIVED, PartState, Scope
from bot.domain.ending import Ending
from bot.domain.reply import PartBody
from storage.engine.clock import now
from storage.engine.tx import Tx
from storage.outbox.moves import Part
from storage.schema.tables import outbox, runs

REPLACED = "the template says it all"
"""Why a part was dropped whose words another part took over."""

_NEVER = 1_000
"""More looks, or sends, than there ever are."""
_RANK = {PartState.SENT: 0, PartState.DELIVERED: 1, PartState.READ: 2}


def confirm(tx: Tx, part: int, receipt: str, state: PartState, status: str) -> bool:
    """sent -> delivered -> read, forward only. False: nothing new."""
    behind = [s.value for s in ARRIVED if _RANK[s] < _RANK[state]]
    if state is not PartState.SENT:
        behind += [PartState.REFUSED.value, PartState.PENDING.value]
    same = (outbox.c.state == state.value) & ~outbox.c.confirmed
    move = (
        update(outbox)
        .where(
            outbox.c.id == part,
            outbox.c.receipt == receipt,
            or_(outbox.c.state.in_(behind), same),
        )
        .values(
            state=state.value,
            provider_status=status,
            confirmed=true(),
            scope=None,
            error="",
            code="",
        )
    )
    return tx.execute(move).rowcount == 1


def refuse(
    tx: Tx, part: int, receipt: str, *, scope: Scope, status: str, error: str, code: str
) -> bool:
    """sent -> refused: the platform took it and then could not bring it. The first code stays;
    what was delivered stays delivered."""
    move = (
        update(outbox)
        .where(
            outbox.c.id == part,
            outbox.c.receipt == receipt,
            outbox.c.state == PartState.SENT.value,
        )
        .values(
            state=PartState.REFUSED.value,
            scope=scope.value,
            provider_status=status,
            confirmed=true(),
            error=case((outbox.c.error == "", error), else_=outbox.c.error),
            code=case((outbox.c.code == "", code), else_=outbox.c.code),
        )
    )
    return tx.execute(move).rowcount == 1


def send_again(
    tx: Tx, part: int, wait: float, *, standalone: bool, body: PartBody | None = None
) -> bool:
    """refused -> pending, due in `wait` seconds, with `body` in place of the old one if that
    is given. False: it moved on, or was sent again before. With `standalone` it goes out by
    itself."""
    changed = {} if body is None else {"text": body.text, "wire": body.wire}
    move = (
        update(outbox)
        .where(
            outbox.c.id == part,
            outbox.c.state == PartState.REFUSED.value,
            outbox.c.resends < 1,
        )
        .values(
            state=PartState.PENDING.value,
            resends=outbox.c.resends + 1,
            looks=0,
            not_before=now + wait,
            scope=None,
            confirmed=false(),
            standalone=standalone,
            **changed,
        )
    )
    return tx.execute(move).rowcount == 1


def give_up_looking(tx: Tx, part: int, attempts: int) -> bool:
    """The provider's records can't be asked about an uncertain part: it stays uncertain, and
    nothing proves that it may be sent again."""
    move = (
        update(outbox)
        .where(
            outbox.c.id == part,
            outbox.c.state == PartState.UNCERTAIN.value,
            outbox.c.attempts == attempts,
        )
        .values(looks=_NEVER, resends=_NEVER)
    )
    return tx.execute(move).rowcount == 1


def rewrite(tx: Tx, part: int, body: PartBody) -> bool:
    """Put other words into a part, before the call that takes them. Its chat is locked, and
    the caller is the one who would make that call."""
    before = (PartState.PENDING.value, PartState.SENDING.value)
    move = (
        update(outbox)
        .where(outbox.c.id == part, outbox.c.state.in_(before))
        .values(text=body.text, wire=body.wire)
    )
    return tx.execute(move).rowcount == 1


def drop_others(tx: Tx, run: int, but: int) -> int:
    """pending -> dropped, for the parts of a run whose words the part `but` took over."""
    move = (
        update(outbox)
        .where(
            outbox.c.run == run,
            outbox.c.id != but,
            outbox.c.kind.in_(("reply", "apology")),
            outbox.c.state == PartState.PENDING.value,
        )
        .values(state=PartState.DROPPED.value, error=REPLACED)
    )
    return tx.execute(move).rowcount


def hasten(tx: Tx, run: int) -> bool:
    """A run that waited for a word on its answer is due now. False: nobody waits."""
    move = (
        update(runs)
        .where(
            runs.c.id == run,
            runs.c.state == "ready",
            runs.c.replied == true(),
            runs.c.not_before > now,
        )
        .values(not_before=now)
    )
    return tx.execute(move).rowcount == 1


_UNREPORTED_FROM = 60.0
_UNREPORTED_UNTIL = 600.0


def unreported(tx: Tx, account: int, limit: int) -> Sequence[int]:
    """Parts of runs that were answered a few minutes ago, on which the platform has not said
    a word since it took them."""
    question = (
        select(outbox.c.id)
        .join(runs, runs.c.id == outbox.c.run)
        .where(
            runs.c.account == account,
            runs.c.ended_at > now - _UNREPORTED_UNTIL,
            runs.c.ended_at < now - _UNREPORTED_FROM,
            runs.c.ending == Ending.ANSWERED.value,
            outbox.c.state == PartState.SENT.value,
            ~outbox.c.confirmed,
        )
        .order_by(outbox.c.id)
        .limit(limit)
    )
    return tx.scalars(question).all()


def follows_unreported(tx: Tx, part: Part, within: float) -> bool:
    """Whether an earlier part of the same answer was taken in the last `within` seconds and
    is not reported on: this one could overtake it."""
    question = exists(
        select(1).where(
            outbox.c.run == part.run,
            outbox.c.kind == part.kind.value,
            outbox.c.part < part.number,
            outbox.c.state == PartState.SENT.value,
            ~outbox.c.confirmed,
            outbox.c.started_at > now - within,
        )
    )
    return part.run is not None and bool(tx.scalar(select(question)))
