"""The moves of a claimed run, and the moves by which an operator or a person ends a run.

A worker's move names its `Claim`: the run's id, the holder, and the fence, which goes up with every
claim and every release. If the guard matches no row, the run was taken over: `StaleLease` is
raised, and the worker stops quietly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from bot.domain.delivery import ARRIVED
from bot.domain.ending import Cause, Close, Ending
from bot.domain.errors import StaleLease
from bot.domain.reply import PartKind
from bot.domain.run import Claim, RunState
from storage import audit_log, outbox
from storage.runs.rows import ENDED, FOR_EVER, IS_RUN, LIVE, PUT_BACK, READY, RUNNING
from storage.schema.tables import outbox as parts
from storage.schema.tables import runs
from storage.statements.binds import HELD_FENCE, HOLDER_ID, REASON, STEP, WAIT
from storage.statements.clock import as_old, moved, now, stamped_before, waited
from storage.statements.literals import is_in, unindexed, word
from storage.statements.sets import Rows
from storage.statements.tx import Tx

_HOLDER = unindexed(runs.c.holder)
_IS_RUNNING = is_in(unindexed(runs.c.state), RunState.RUNNING)
_HELD = sa.and_(IS_RUN, _HOLDER == HOLDER_ID, runs.c.fence == HELD_FENCE, _IS_RUNNING)


def _held_by(claim: Claim, **values: object) -> dict[str, object]:
    return {"run_id": claim.run, "holder_id": claim.holder, "held_fence": claim.fence, **values}


def _move(tx: Tx, move: sa.Update, claim: Claim, too_late: str, **values: object) -> None:
    """Raises StaleLease when the run is somebody else's by now."""
    if tx.execute(move, _held_by(claim, **values)).rowcount != 1:
        raise StaleLease(f"run {claim.run} was taken over before {too_late}")


_HOLD = sa.select(1).where(_HELD).with_for_update(key_share=True)


def hold(tx: Tx, claim: Claim) -> None:
    """Lock the run's row, for a move on one of its parts. Raises StaleLease."""
    if tx.execute(_HOLD, _held_by(claim)).first() is None:
        raise StaleLease(f"run {claim.run} is no longer held under fence {claim.fence}")


_GIVE_BACK = (
    sa.update(runs)
    .where(_HELD)
    .values(
        **PUT_BACK,
        failures=runs.c.failures + sa.bindparam("failed"),
        not_before=now + WAIT,
        idle_since=now + sa.bindparam("worked"),
        detail=REASON,
    )
)
_BEFORE_BACK = "it could be given back"


def give_back(tx: Tx, claim: Claim, wait: float, reason: str) -> None:
    """running -> ready, due in `wait` seconds, with nothing counted against the run. Its deadline
    is moved by the time until it is claimed. The chat is locked. Raises StaleLease."""
    _move(tx, _GIVE_BACK, claim, _BEFORE_BACK, wait=wait, reason=reason, failed=0, worked=0.0)


def keep(tx: Tx, claim: Claim, reason: str) -> None:
    """running -> ready, for a run whose answer is stored and whose account is down: it is due once
    the account is up. The chat is locked. Raises StaleLease."""
    give_back(tx, claim, FOR_EVER, reason)


def retry_later(tx: Tx, claim: Claim, wait: float, reason: str) -> None:
    """running -> ready, because the agent asked to be tried again. That is no failure, but the wait
    counts towards the deadline, so that an agent can't ask for ever. The chat is locked. Raises
    StaleLease."""
    _move(tx, _GIVE_BACK, claim, _BEFORE_BACK, wait=wait, reason=reason, failed=0, worked=wait)


def fail(tx: Tx, claim: Claim, wait: float, reason: str) -> None:
    """running -> ready after a failure without progress, which is counted; so is the wait, towards
    the deadline. The chat is locked. Raises StaleLease."""
    _move(tx, _GIVE_BACK, claim, _BEFORE_BACK, wait=wait, reason=reason, failed=1, worked=wait)


_UNCLAIM = (
    sa.update(runs)
    .where(_HELD)
    .values(
        **PUT_BACK,
        attempts=runs.c.attempts - 1,
        deadline_at=sa.case((runs.c.attempts > 1, runs.c.deadline_at), else_=None),
        idle_since=runs.c.claimed_at,
    )
)


def unclaim(tx: Tx, claim: Claim) -> None:
    """running -> ready, as if it had not been claimed: its agent was not called. The chat is
    locked. Raises StaleLease."""
    _move(tx, _UNCLAIM, claim, "it was let go")


_CAUSE = sa.bindparam("new_cause", type_=sa.Text)
_SET_ASIDE = (
    sa.update(runs)
    .where(_HELD)
    .values(**PUT_BACK, set_aside=REASON, idle_since=now, not_before=now)
)


def set_aside(tx: Tx, claim: Claim, reason: str) -> None:
    """running -> ready, but not to be claimed, because our own code keeps failing on it; `stuck`
    lists it. The chat is locked. Raises StaleLease."""
    _move(tx, _SET_ASIDE, claim, "it could be set aside", reason=reason)


_claims = Rows("claims", run_id=sa.BigInteger(), holder_id=sa.BigInteger(), fence=sa.BigInteger())


def _held_among(listed: Rows) -> sa.ColumnElement[bool]:
    """The run is held under one of these claims."""
    of = listed.c
    held = (runs.c.id == of.run_id, of.holder_id == _HOLDER, runs.c.fence == of.fence)
    return sa.and_(*held, _IS_RUNNING)


_PROGRESS = sa.update(runs).where(_HELD).values(failures=0, deaths=0, quarantined=sa.false())
_REPLIED = (
    sa.update(runs)
    .where(_held_among(_claims))
    .values(replied=True, quarantined=sa.false())
    .returning(runs.c.id)
)
_HAND_OVER = sa.update(runs).where(_HELD).values(handoff=REASON)
_EXPLAIN = sa.update(runs).where(_HELD).values(cause=_CAUSE, detail=REASON)


def progress(tx: Tx, claim: Claim) -> None:
    """Note that a step was stored: failures and deaths are counted from zero again, and the run is
    no suspect any more. Raises StaleLease."""
    _move(tx, _PROGRESS, claim, "a step of it was stored")


def mark_replied_each(tx: Tx, claims: Sequence[Claim]) -> frozenset[int]:
    """Note that the replies of these runs are stored, in this transaction, so that their agents are
    never called again. Returns the runs that were not taken over before."""
    if not claims:
        return frozenset()
    rows = [(one.run, one.holder, one.fence) for one in claims]
    return frozenset(tx.scalars(_REPLIED, _claims.of(rows)))


def hand_over(tx: Tx, claim: Claim, reason: str) -> None:
    """Store why the agent asked for a person, for the end of the run. Raises StaleLease."""
    _move(tx, _HAND_OVER, claim, "its handoff was stored", reason=reason)


def explain(tx: Tx, claim: Claim, cause: Cause, reason: str) -> None:
    """Store why an apology is owed, for the ending that it will lead to. Raises StaleLease."""
    _move(tx, _EXPLAIN, claim, "its apology was stored", new_cause=cause.value, reason=reason)


_NEW_ENDING = sa.bindparam("new_ending", type_=sa.Text)
_END: dict[str, Any] = {
    "state": word(RunState.ENDED),
    "chat": sa.func.coalesce(runs.c.moves_to, runs.c.chat),
    "holder": None,
    "fence": runs.c.fence + 1,
    "quarantined": sa.false(),
    "ending": _NEW_ENDING,
    "cause": _CAUSE,
    "detail": REASON,
    "ended_at": now,
}
_ends = Rows(
    "ends",
    run_id=sa.BigInteger(),
    holder_id=sa.BigInteger(),
    fence=sa.BigInteger(),
    ending=sa.Text(),
    cause=sa.Text(),
    detail=sa.Text(),
)
_SETTLE = (
    sa.update(runs)
    .where(_held_among(_ends))
    .values(**_END | {name: _ends.c[name] for name in ("ending", "cause", "detail")})
    .returning(runs.c.id, runs.c.moves_to)
)
_END_LIVE = (
    sa.update(runs)
    .where(IS_RUN, LIVE, sa.or_(HELD_FENCE < 0, runs.c.fence == HELD_FENCE))
    .values(**_END)
    .returning(runs.c.moves_to)
)


def settle(tx: Tx, claim: Claim, end: Close) -> None:
    """running -> ended, by the holder. The chat is locked. Raises StaleLease."""
    if not settle_each(tx, [(claim, end)]):
        raise StaleLease(f"run {claim.run} was taken over before it could be settled")


def settle_each(tx: Tx, ends: Sequence[tuple[Claim, Close]]) -> frozenset[int]:
    """As `settle`, for several runs. Returns those that were not taken over before."""
    if not ends:
        return frozenset()
    rows = [
        (claim.run, claim.holder, claim.fence, end.ending.value, end.cause.value, end.words)
        for claim, end in ends
    ]
    ended = tx.execute(_SETTLE, _ends.of(rows)).all()
    for run, moves_to in ended:
        _moved(tx, run, moves_to)
    return frozenset(run for run, _ in ended)


def end_live(tx: Tx, run: int, end: Close, fence: int | None = None) -> bool:
    """waiting | ready | running -> ended, by a person's stop or an operator. The chat is locked.
    False: it had ended already, or `fence` is given and is not its fence any more."""
    values: dict[str, object] = {"run_id": run, "held_fence": -1 if fence is None else fence}
    ended = tx.execute(_END_LIVE, values | _new_end(end)).first()
    if ended is not None:
        _moved(tx, run, ended.moves_to)
        outbox.set_adrift(tx, run)
    return ended is not None


_REPLY = sa.select(1).where(parts.c.run == runs.c.id, is_in(parts.c.kind, PartKind.REPLY))
_ALL_ARRIVED = sa.and_(
    sa.exists(_REPLY).correlate(runs),
    ~sa.exists(_REPLY.where(~is_in(parts.c.state, *sorted(ARRIVED)))).correlate(runs),
)
_END_ALL = (
    sa.update(runs)
    .where(LIVE)
    .values(
        **_END
        | {
            "ending": sa.case((_ALL_ARRIVED, word(Ending.ANSWERED)), else_=_NEW_ENDING),
            "cause": sa.case((_ALL_ARRIVED, word(Cause.DELIVERED)), else_=_CAUSE),
            "detail": sa.case((_ALL_ARRIVED, sa.literal_column("''")), else_=REASON),
        }
    )
    .returning(runs.c.id, runs.c.chat, runs.c.moves_to, runs.c.ending)
)


def end_all(tx: Tx, end: Close) -> Mapping[int, int]:
    """waiting | ready | running -> ended, for all live runs of a database that came from a backup,
    on which nobody works yet. Runs whose answers have arrived end as answered. Returns the others,
    each with its chat."""
    ended = tx.execute(_END_ALL, _new_end(end)).all()
    for run, _, moves_to, _ in ended:
        _moved(tx, run, moves_to)
    return {run: chat for run, chat, _, ending in ended if ending == end.ending.value}


def _new_end(end: Close) -> dict[str, object]:
    return {"new_ending": end.ending.value, "new_cause": end.cause.value, "reason": end.words}


def _moved(tx: Tx, run: int, moves_to: int | None) -> None:
    if moves_to is not None:
        # Its parts and events still stand in the chat that was merged.
        outbox.move_run(tx, run, moves_to)
        audit_log.move_run(tx, run, moves_to)


_CORRECT = (
    sa.update(runs)
    .where(IS_RUN, ENDED, runs.c.ending == sa.bindparam("old_ending"))
    .values(ending=sa.bindparam("new_ending"), cause=_CAUSE, detail=REASON)
)


def correct_ending(tx: Tx, run: int, before: Ending, after: Close) -> bool:
    """ended(before) -> ended(after), for a late delivery status, an operator's correction or a
    button that the person pressed. False: it has another ending by now."""
    values = {"run_id": run, "old_ending": before.value} | _new_end(after)
    return tx.execute(_CORRECT, values).rowcount == 1


_ON_TIME = (
    sa.update(runs)
    .where(is_in(runs.c.state, RunState.READY, RunState.WAITING), waited(runs.c.not_before))
    .values(not_before=moved(runs.c.not_before))
)
_IN_TIME = (
    sa.update(runs)
    .where(LIVE, runs.c.deadline_at > 0, stamped_before(runs.c.claimed_at))
    .values({name: runs.c[name] + STEP for name in ("deadline_at", "idle_since", "claimed_at")})
)
_NO_OLDER = (
    sa.update(runs)
    .where(LIVE, stamped_before(runs.c.created_at))
    .values(created_at=as_old(runs.c.created_at))
)


def follow_clock(tx: Tx, step: float) -> None:
    """Move due times, deadlines and the ages of live runs with the database's clock, which was set
    by `step` seconds. Must not be done twice for one step. The chats are locked."""
    for move in (_ON_TIME, _IN_TIME, _NO_OLDER):
        tx.execute(move, {"step": step})


_MAKE_DUE = (
    sa.update(runs)
    .where(
        IS_RUN,
        is_in(runs.c.state, RunState.READY, RunState.WAITING),
        sa.or_(runs.c.not_before > now, runs.c.set_aside.is_not(None)),
    )
    .values(not_before=now, set_aside=None)
)
_HASTEN = (
    sa.update(runs)
    .where(IS_RUN, READY, runs.c.replied == sa.true(), runs.c.not_before > now)
    .values(not_before=now)
)


def make_due(tx: Tx, run: int) -> bool:
    """Let a run that is not due yet, or was set aside, be claimed now, as an operator asked. The
    chat is locked. False: it is due already, or running, or over."""
    return tx.execute(_MAKE_DUE, {"run_id": run}).rowcount == 1


def hasten(tx: Tx, run: int) -> bool:
    """Make an answered run due now: the delivery status that it waited for has come. False: it did
    not wait."""
    return tx.execute(_HASTEN, {"run_id": run}).rowcount == 1


_OWE_APOLOGY = (
    sa.update(runs)
    .where(IS_RUN, LIVE, runs.c.replied == sa.false())
    .values(
        state=sa.case((RUNNING, PUT_BACK["state"]), else_=runs.c.state),
        chat=sa.case((RUNNING, PUT_BACK["chat"]), else_=runs.c.chat),
        holder=None,
        fence=runs.c.fence + 1,
        quarantined=sa.false(),
        replied=sa.true(),
        not_before=now,
        set_aside=None,
        cause=Cause.OPERATOR.value,
        detail=REASON,
    )
)


def owe_apology(tx: Tx, run: int, reason: str) -> bool:
    """running -> ready (ready and waiting stay), as an operator asked: whoever works on the run
    loses it, and whoever claims it next sends the apology that is stored in the same transaction.
    The chat is locked. False: the run has ended, or its answer is stored."""
    return tx.execute(_OWE_APOLOGY, {"run_id": run, "reason": reason}).rowcount == 1
