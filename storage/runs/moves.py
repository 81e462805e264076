"""The moves of a run. Each is one guarded statement; losing is an ordinary result.

    intake   ->  waiting | ready | running       (births.insert_run)
    waiting  ->  ready                           (promote)
    ready    ->  running                         (claims.claim)
    running  ->  ready                           (give_back, retry_later, fail; releases)
    any live ->  ended                           (settle, end_live)

A worker's move names its `Claim`: the run's id, the holder and the fence, which goes up with
every claim and every release. When the guard matches no row, the run is somebody else's by
now: `StaleLease`, and the worker stops quietly. Moves that change who is the head of a chat,
or may find it paused, expect the chat's row to be locked (`chats.lock`): a waiter can't be
stranded between them. Lock order everywhere: chat, run, part.

A run whose chat became part of another one while it was running (`merge`) stays where it is
until it ends; `moves_to` is the chat that counts it as its head meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    Double,
    Update,
    and_,
    bindparam,
    case,
    exists,
    false,
    func,
    or_,
    select,
    union_all,
    update,
)

from bot.domain.ending import Ending
from bot.domain.errors import StaleLease
from bot.domain.run import Claim, Run, RunState
from storage.engine.clock import now
from storage.engine.literals import is_in, is_not, word
from storage.engine.sets import among
from storage.engine.tx import Row, Tx
from storage.schema.tables import chats, events, outbox, runs

COLUMNS = (
    runs.c.id,
    runs.c.chat,
    runs.c.account,
    runs.c.state,
    runs.c.fence,
    runs.c.holder,
    runs.c.attempts,
    runs.c.failures,
    runs.c.deaths,
    runs.c.not_before,
    runs.c.deadline_at,
    runs.c.created_at,
    runs.c.ending,
    runs.c.detail,
)
SUSPECT_DEATHS = 2
"""After so many deaths of its holder during the agent, a run is a suspect."""

_ME = bindparam("me", type_=BigInteger)
_OF = bindparam("of", type_=BigInteger)
_UNDER = bindparam("under", type_=BigInteger)
_AT = bindparam("at", type_=Double)
_UNTIL = bindparam("until", type_=Double)

SUSPECT = and_(runs.c.replied == false(), runs.c.deaths >= SUSPECT_DEATHS)
HEADS = (RunState.READY, RunState.RUNNING)

PAUSED = exists(
    select(1).where(
        chats.c.id == func.coalesce(runs.c.moves_to, runs.c.chat), chats.c.paused_until > now
    )
).correlate(runs)
"""Whether the run's conversation is paused. The chat is locked, or a pause that commits in
this moment is not seen."""

PUT_BACK: dict[str, Any] = {
    "state": case((PAUSED, word(RunState.WAITING)), else_=word(RunState.READY)),
    "chat": case((and_(PAUSED, runs.c.moves_to.is_not(None)), runs.c.moves_to), else_=runs.c.chat),
    "holder": None,
    "fence": runs.c.fence + 1,
    "lane": SUSPECT,
}
"""running -> ready, or waiting in a paused chat. Who was suspected waits for the lane."""


def run_of(row: Row) -> Run:
    """A row of COLUMNS."""
    return Run(
        id=row.id,
        chat=row.chat,
        account=row.account,
        state=RunState(row.state),
        fence=row.fence,
        holder=row.holder,
        attempts=row.attempts,
        failures=row.failures,
        deaths=row.deaths,
        not_before=row.not_before,
        deadline_at=row.deadline_at,
        created_at=row.created_at,
        ending=None if row.ending is None else Ending(row.ending),
        detail=row.detail,
    )


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who claims: the holder, its lease, and how long the agent may work (seconds)."""

    holder: int
    lease_seconds: float
    run_deadline: float


_HELD = and_(
    runs.c.id == bindparam("run"),
    runs.c.holder == _ME,
    runs.c.fence == _UNDER,
    is_in(runs.c.state, RunState.RUNNING),
)


def _held_by(claim: Claim) -> dict[str, object]:
    return {"run": claim.run, "me": claim.holder, "under": claim.fence}


def _move(tx: Tx, move: Update, claim: Claim, too_late: str, **values: object) -> None:
    """A worker's move: StaleLease when the run is somebody else's by now."""
    if tx.execute(move, _held_by(claim) | values).rowcount != 1:
        raise StaleLease(f"run {claim.run} was taken over before {too_late}")


_HOLD = select(1).where(_HELD).with_for_update(key_share=True)


def hold(tx: Tx, claim: Claim) -> None:
    """Lock the run's row for a move on one of its parts. Raises StaleLease when it is lost."""
    if tx.execute(_HOLD, _held_by(claim)).first() is None:
        raise StaleLease(f"run {claim.run} is no longer held under fence {claim.fence}")


_GIVE_BACK = (
    update(runs)
    .where(_HELD)
    .values(
        **PUT_BACK,
        failures=runs.c.failures + bindparam("failed"),
        not_before=now + bindparam("wait"),
        idle_since=now + bindparam("worked"),
        detail=bindparam("why"),
    )
)


def give_back(tx: Tx, claim: Claim, wait: float, why: str) -> None:
    """running -> ready, due in `wait` seconds, counting nothing. The agent's clock stands
    still from now on. The chat is locked. Raises StaleLease."""
    _put_back(tx, claim, wait, why, failed=False, worked=0.0)


def retry_later(tx: Tx, claim: Claim, wait: float, why: str) -> None:
    """running -> ready because the agent asked for it: no failure, and the wait counts
    against the deadline, so that asking for ever ends. The chat is locked. Raises StaleLease."""
    _put_back(tx, claim, wait, why, failed=False, worked=wait)


def fail(tx: Tx, claim: Claim, wait: float, why: str) -> None:
    """running -> ready after a failure without progress. The chat is locked. Raises
    StaleLease."""
    _put_back(tx, claim, wait, why, failed=True, worked=wait)


def _put_back(tx: Tx, claim: Claim, wait: float, why: str, *, failed: bool, worked: float) -> None:
    values = {"wait": wait, "why": why, "failed": int(failed), "worked": worked}
    _move(tx, _GIVE_BACK, claim, "it could be given back", **values)


_ENDED: dict[str, Any] = {
    "state": word(RunState.ENDED),
    "chat": func.coalesce(runs.c.moves_to, runs.c.chat),
    "holder": None,
    "fence": runs.c.fence + 1,
    "lane": false(),
    "ending": bindparam("how"),
    "detail": bindparam("why"),
    "ended_at": now,
}
_SETTLE = update(runs).where(_HELD).values(**_ENDED).returning(runs.c.moves_to)
_END = (
    update(runs)
    .where(
        runs.c.id == bindparam("run"),
        is_not(runs.c.state, RunState.ENDED),
        or_(_UNDER < 0, runs.c.fence == _UNDER),
    )
    .values(**_ENDED)
    .returning(runs.c.moves_to)
)


def settle(tx: Tx, claim: Claim, ending: Ending, detail: str) -> None:
    """running -> ended, by the one who holds it. The chat is locked. Raises StaleLease."""
    values = _held_by(claim) | {"how": ending.value, "why": detail}
    ended = tx.execute(_SETTLE, values).first()
    if ended is None:
        raise StaleLease(f"run {claim.run} was taken over before it could be settled")
    _follow(tx, claim.run, ended.moves_to)


def end_live(tx: Tx, run: int, ending: Ending, detail: str, fence: int | None = None) -> bool:
    """waiting | ready | running -> ended, by a stop or an operator. The chat is locked.
    False: it had ended already, or moved on from `fence`."""
    values = {"run": run, "how": ending.value, "why": detail, "under": fence}
    ended = tx.execute(_END, values | ({"under": -1} if fence is None else {})).first()
    if ended is None:
        return False
    _follow(tx, run, ended.moves_to)
    return True


def _follow(tx: Tx, run: int, to: int | None) -> None:
    """What a run left behind in a chat that is part of another one moves with it."""
    if to is not None:
        for table in (outbox, events):
            tx.execute(update(table).where(table.c.run == run).values(chat=to))


_CONVERSATION = func.coalesce(
    select(chats.c.merged_into).where(chats.c.id == _OF).scalar_subquery(),
    _OF,
)
_FIRST = (
    select(runs.c.id)
    .where(
        runs.c.chat == _CONVERSATION,
        is_in(runs.c.state, RunState.WAITING),
        is_not(runs.c.state, RunState.ENDED),
    )
    .order_by(runs.c.order_at, runs.c.id)
    .limit(1)
    .scalar_subquery()
)
_head = runs.alias("head")
_HAS_HEAD = or_(
    exists(select(1).where(_head.c.chat == _CONVERSATION, is_in(_head.c.state, *HEADS))),
    exists(select(1).where(_head.c.moves_to == _CONVERSATION, is_in(_head.c.state, *HEADS))),
)
_PROMOTE = (
    update(runs)
    .where(
        runs.c.id == _FIRST,
        is_in(runs.c.state, RunState.WAITING),
        ~_HAS_HEAD,
        ~exists(select(1).where(chats.c.id == _CONVERSATION, chats.c.paused_until > now)),
    )
    .values(
        state=word(RunState.READY),
        not_before=case((runs.c.not_before < now, now), else_=runs.c.not_before),
        idle_since=case((runs.c.attempts == 0, now), else_=runs.c.idle_since),
    )
    .returning(runs.c.id)
)


def promote(tx: Tx, chat: int) -> int | None:
    """waiting -> ready, for the oldest waiter of a chat without a head. The chat is locked.

    Nothing moves in a paused chat: `resume` promotes. The agent's clock of a run that was
    worked on before stands still until it is claimed. Returns the run that became ready.
    """
    promoted: int | None = tx.scalar(_PROMOTE, {"of": chat})
    return promoted


_PROGRESS = update(runs).where(_HELD).values(failures=0, deaths=0, lane=false(), progress_at=now)
_REPLIED = update(runs).where(_HELD).values(replied=True, lane=false(), progress_at=now)
_EXPLAIN = update(runs).where(_HELD).values(detail=bindparam("why"))
_SET_ASIDE = (
    update(runs)
    .where(_HELD)
    .values(**PUT_BACK, set_aside=bindparam("why"), idle_since=now, not_before=now)
)


def progress(tx: Tx, claim: Claim) -> None:
    """A step was stored: failures and deaths start again from zero, and the run is no suspect
    any more. Raises StaleLease."""
    _move(tx, _PROGRESS, claim, "a step of it was stored")


def mark_replied(tx: Tx, claim: Claim) -> None:
    """The reply is stored in this transaction: the agent is done. Raises StaleLease."""
    _move(tx, _REPLIED, claim, "its reply was stored")


def explain(tx: Tx, claim: Claim, detail: str) -> None:
    """Keep why an apology is owed, for the ending that it will lead to. Raises StaleLease."""
    _move(tx, _EXPLAIN, claim, "its apology was stored", why=detail)


def set_aside(tx: Tx, claim: Claim, why: str) -> None:
    """running -> ready, kept from being claimed, because it breaks its workers; operators see
    it listed. The chat is locked. Raises StaleLease."""
    _move(tx, _SET_ASIDE, claim, "it could be set aside", why=why)


_CORRECT = (
    update(runs)
    .where(
        runs.c.id == bindparam("run"),
        is_in(runs.c.state, RunState.ENDED),
        runs.c.ending == bindparam("before"),
    )
    .values(ending=bindparam("after"), detail=bindparam("why"))
)


def correct_ending(tx: Tx, run: int, before: Ending, after: Ending, detail: str) -> bool:
    """ended(before) -> ended(after): a late witness, an operator, the person's own button."""
    values = {"run": run, "before": before.value, "after": after.value, "why": detail}
    return tx.execute(_CORRECT, values).rowcount == 1


_FIND = select(*COLUMNS).where(runs.c.id == bindparam("run"))
_FIND_LOCKED = _FIND.with_for_update(key_share=True)


def find(tx: Tx, run: int, *, lock: bool = False) -> Run | None:
    """One run, or None."""
    row = tx.execute(_FIND_LOCKED if lock else _FIND, {"run": run}).first()
    return None if row is None else run_of(row)


_LIVE_HERE = is_not(runs.c.state, RunState.ENDED)
_live = union_all(
    select(*COLUMNS, runs.c.order_at).where(runs.c.chat == _OF, _LIVE_HERE),
    select(*COLUMNS, runs.c.order_at).where(runs.c.moves_to == _OF, _LIVE_HERE),
).subquery()
_LIVE_IN_CHAT = select(_live).order_by(
    case((_live.c.state == word(RunState.WAITING), 1), else_=0), _live.c.order_at, _live.c.id
)


def live_in_chat(tx: Tx, chat: int) -> Sequence[Run]:
    """The conversation's runs that have not ended: the head first, then the waiters in their
    order. A run of a chat that became part of this one is a head too."""
    return [run_of(row) for row in tx.execute(_LIVE_IN_CHAT, {"of": chat})]


_LAST_ENDED = (
    select(*COLUMNS)
    .where(
        runs.c.chat == _OF,
        is_in(runs.c.state, RunState.ENDED),
        among(runs.c.ending, "endings"),
    )
    .order_by(runs.c.ended_at.desc(), runs.c.id.desc())
    .limit(1)
)


def last_ended(tx: Tx, chat: int, endings: Sequence[Ending]) -> Run | None:
    """The chat's run that was the last to end in one of these ways, or None."""
    values = {"of": chat, "endings": [e.value for e in endings]}
    row = tx.execute(_LAST_ENDED, values).first()
    return None if row is None else run_of(row)


_ALBUM = select(runs.c.album).where(runs.c.id == bindparam("run"))
