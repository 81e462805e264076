"""The moves of a run. Each is one guarded statement; losing is an ordinary result.

    intake   ->  waiting | ready | running       (insert_run)
    waiting  ->  ready                           (promote)
    ready    ->  running                         (claim, claim_suspect)
    running  ->  ready                           (give_back, fail, release_dead)
    any live ->  ended                           (settle, end_live)

A worker's move names its `Grip`: the run's id, the holder and the fence, which goes up with
every claim and every release. When the guard matches no row, the run is somebody else's by
now: `StaleLease`, and the worker stops quietly. Moves that end a run or make room in a chat
expect the chat's row to be locked (`chats.lock`): a waiter can't be stranded between them.
Lock order everywhere: chat, run, part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import (
    Connection,
    Row,
    and_,
    bindparam,
    case,
    exists,
    false,
    func,
    insert,
    or_,
    select,
    true,
    update,
)

from bot.domain.ending import Ending
from bot.domain.errors import StaleLease
from bot.domain.run import LIVE, Grip, Run, RunState
from storage import holders as holder_moves
from storage.clock import lease_now, now
from storage.clock import read as read_clock
from storage.tables import accounts, chats, holders, runs

_COLUMNS = (
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


def _run(row: Row) -> Run:  # type: ignore[type-arg]
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
class NewRun:
    """A run to be made at intake. Times in epoch seconds; `wait` delays its start."""

    account: int
    chat: int
    request_id: str
    order_at: float
    wait: float
    album: str
    stop_revision: int


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who claims: the holder, its lease, and how long the agent may work (seconds)."""

    holder: int
    lease_seconds: float
    run_deadline: float


def insert_run(tx: Connection, new: NewRun, by: Claimant | None, *, head: bool) -> Run:
    """intake -> waiting | ready | running. With `by` and `head` it is born claimed, if that
    holder is alive, not draining, and the run is due at once."""
    common = {
        "account": new.account,
        "chat": new.chat,
        "request_id": new.request_id,
        "order_at": new.order_at,
        "last_message_at": new.order_at,
        "not_before": now + new.wait if new.wait else 0.0,
        "idle_since": now,
        "album": new.album,
        "stop_revision": new.stop_revision,
        "messages": 1,
        "created_at": now,
    }
    state: dict[str, object] = {"state": RunState.READY if head else RunState.WAITING}
    if head and by is not None and not new.wait:
        may = and_(
            holder_moves.alive(by.holder, by.lease_seconds),
            exists(select(1).where(holders.c.id == by.holder, ~holders.c.draining)),
        )
        state = {
            "state": case((may, RunState.RUNNING.value), else_=RunState.READY.value),
            "holder": case((may, by.holder), else_=None),
            "fence": case((may, 1), else_=0),
            "attempts": case((may, 1), else_=0),
            "claimed_at": case((may, now), else_=None),
            "deadline_at": case((may, now + by.run_deadline), else_=None),
        }
    row = tx.execute(insert(runs).values(**common, **state).returning(*_COLUMNS)).one()
    return _run(row)


def join(tx: Connection, run: int, order_at: float, wait: float, longest: float) -> bool:
    """Add a message to a run that was never claimed. False: somebody claimed it first.

    A run that collects (an album, a quiet time) is put off again by `wait` seconds, at most
    to `longest` seconds after it was made.
    """
    values: dict[str, object] = {
        "messages": runs.c.messages + 1,
        "last_message_at": case(
            (runs.c.last_message_at < order_at, order_at), else_=runs.c.last_message_at
        ),
    }
    if wait:
        due = now + wait
        last = runs.c.created_at + longest
        values["not_before"] = case((due < last, due), else_=last)
    move = (
        update(runs)
        .where(runs.c.id == run, runs.c.attempts == 0, runs.c.state.in_(("waiting", "ready")))
        .values(**values)
    )
    return tx.execute(move).rowcount == 1


_CLAIMED = {
    "state": RunState.RUNNING.value,
    "holder": bindparam("me"),
    "fence": runs.c.fence + 1,
    "attempts": runs.c.attempts + 1,
    "claimed_at": now,
    "deadline_at": case(
        (runs.c.deadline_at.is_(None), now + bindparam("run_deadline")),
        (runs.c.idle_since < now, runs.c.deadline_at + (now - runs.c.idle_since)),
        else_=runs.c.deadline_at,
    ),
}


def _claimable(mine: Sequence[int], *, suspects: bool):  # type: ignore[no-untyped-def]
    suspect = and_(runs.c.deaths >= SUSPECT_DEATHS, runs.c.replied == false())
    order = (
        (runs.c.failures, runs.c.order_at, runs.c.id)
        if suspects
        else (runs.c.not_before, runs.c.id)
    )
    return (
        select(runs.c.id)
        .where(
            runs.c.state == "ready",
            runs.c.not_before <= now,
            runs.c.account.in_(mine),
            runs.c.set_aside.is_(None),
            suspect if suspects else ~suspect,
        )
        .order_by(*order)
        .limit(bindparam("room"))
        .with_for_update(skip_locked=True, key_share=True)
    )


def claim(tx: Connection, by: Claimant, mine: Sequence[int], room: int) -> Sequence[Run]:
    """ready -> running, for at most `room` due runs of the accounts `mine`, oldest due first."""
    return _claim(tx, by, mine, room, suspects=False)


def claim_suspect(tx: Connection, by: Claimant, mine: Sequence[int]) -> Run | None:
    """ready -> running in the holder's one lane for suspects, if the lane is free.

    Fewest failures first, then oldest: an innocent that died twice beside a poison is
    answered before the poison gets its next chance.
    """
    busy = select(1).where(
        runs.c.state == "running", runs.c.holder == by.holder, runs.c.lane == true()
    )
    if tx.execute(busy).first() is not None:
        return None
    claimed = _claim(tx, by, mine, 1, suspects=True)
    return claimed[0] if claimed else None


def _claim(
    tx: Connection, by: Claimant, mine: Sequence[int], room: int, *, suspects: bool
) -> Sequence[Run]:
    # A CTE that locks is run once; an IN over the bare select may be run again and lock more.
    chosen = _claimable(mine, suspects=suspects).cte("chosen")
    move = (
        update(runs)
        .where(
            runs.c.id.in_(select(chosen.c.id)),
            runs.c.state == "ready",
            holder_moves.alive(by.holder, by.lease_seconds),
        )
        .values(**_CLAIMED, lane=true() if suspects else false())
        .returning(*_COLUMNS)
    )
    params = {"me": by.holder, "run_deadline": by.run_deadline, "room": room}
    return [_run(row) for row in tx.execute(move, params)]


def _held(grip: Grip):  # type: ignore[no-untyped-def]
    return and_(
        runs.c.id == grip.run,
        runs.c.holder == grip.holder,
        runs.c.fence == grip.fence,
        runs.c.state == "running",
    )


def hold(tx: Connection, grip: Grip) -> None:
    """Lock the run's row for a move on one of its parts. Raises StaleLease when it is lost."""
    locked = select(1).where(_held(grip)).with_for_update(key_share=True)
    if tx.execute(locked).first() is None:
        raise StaleLease(f"run {grip.run} is no longer held under fence {grip.fence}")


def give_back(tx: Connection, grip: Grip, wait: float, why: str) -> None:
    """running -> ready, due in `wait` seconds, counting nothing. The agent's clock stands
    still from now on. Raises StaleLease."""
    _put_back(tx, grip, wait, why, failed=False, idle_since=now)


def retry_later(tx: Connection, grip: Grip, wait: float, why: str) -> None:
    """running -> ready because the agent asked for it: no failure, and the wait counts
    against the deadline, so that asking for ever ends. Raises StaleLease."""
    _put_back(tx, grip, wait, why, failed=False, idle_since=now + wait)


def fail(tx: Connection, grip: Grip, wait: float, why: str) -> None:
    """running -> ready after a failure without progress. Raises StaleLease."""
    _put_back(tx, grip, wait, why, failed=True, idle_since=now + wait)


def _put_back(  # type: ignore[no-untyped-def]
    tx: Connection, grip: Grip, wait: float, why: str, *, failed: bool, idle_since
) -> None:
    move = (
        update(runs)
        .where(_held(grip))
        .values(
            state=RunState.READY.value,
            holder=None,
            fence=runs.c.fence + 1,
            failures=runs.c.failures + (1 if failed else 0),
            lane=false(),
            not_before=now + wait,
            idle_since=idle_since,
            detail=why,
        )
    )
    if tx.execute(move).rowcount != 1:
        raise StaleLease(f"run {grip.run} was taken over before it could be given back")


@dataclass(frozen=True, slots=True)
class Released:
    """A run taken from a dead holder. `counted` says that the death is on its account."""

    run: int
    chat: int
    holder: int
    counted: bool


def release_dead(tx: Connection, chat: int | None = None) -> Sequence[Released]:
    """running -> ready, for runs whose holder is gone (of one chat, or of all).

    The death counts against a run whose agent was at work, unless the holder was draining;
    a run in the suspects' lane is charged a failure. Time since the holder's last renewal
    does not count as work.
    """
    held = holders.alias("dead")
    gone = (
        select(
            runs.c.id,
            runs.c.chat,
            runs.c.holder,
            held.c.draining,
            (lease_now - held.c.renewed_at).label("silent"),
        )
        .join(held, held.c.id == runs.c.holder)
        .where(runs.c.state == "running", held.c.gone_at.is_not(None))
        .order_by(runs.c.id)
        .with_for_update(of=runs, key_share=True, skip_locked=True)
    )
    if chat is not None:
        gone = gone.where(runs.c.chat == chat)
    released = []
    for row in tx.execute(gone).all():
        counted = and_(runs.c.replied == false(), false() if row.draining else true())
        move = (
            update(runs)
            .where(runs.c.id == row.id, runs.c.state == "running", runs.c.holder == row.holder)
            .values(
                state=RunState.READY.value,
                holder=None,
                fence=runs.c.fence + 1,
                deaths=runs.c.deaths + case((counted, 1), else_=0),
                failures=runs.c.failures + case((and_(counted, runs.c.lane == true()), 1), else_=0),
                lane=false(),
                not_before=now,
                idle_since=now - max(0.0, min(row.silent, 86_400.0 * 30)),
            )
            .returning(runs.c.replied)
        )
        replied = tx.execute(move).scalar_one_or_none()
        if replied is not None:
            released.append(
                Released(row.id, row.chat, row.holder, not replied and not row.draining)
            )
    return released


def release_own(tx: Connection, holder: int) -> Sequence[Released]:
    """running -> ready, uncounted, for all runs of a life that ended while the database was
    away: nobody's fault, no death."""
    move = (
        update(runs)
        .where(runs.c.state == "running", runs.c.holder == holder)
        .values(
            state=RunState.READY.value,
            holder=None,
            fence=runs.c.fence + 1,
            lane=false(),
            not_before=now,
            idle_since=now,
        )
        .returning(runs.c.id, runs.c.chat)
    )
    return [Released(row.id, row.chat, holder, False) for row in tx.execute(move)]


def settle(tx: Connection, grip: Grip, ending: Ending, detail: str) -> None:
    """running -> ended, by the one who holds it. The chat is locked. Raises StaleLease."""
    move = update(runs).where(_held(grip)).values(**_ended(ending, detail))
    if tx.execute(move).rowcount != 1:
        raise StaleLease(f"run {grip.run} was taken over before it could be settled")


def end_live(
    tx: Connection, run: int, ending: Ending, detail: str, fence: int | None = None
) -> bool:
    """waiting | ready | running -> ended, by a stop or an operator. The chat is locked.
    False: it had ended already, or moved on from `fence`."""
    guard = [runs.c.id == run, runs.c.state.in_(LIVE)]
    if fence is not None:
        guard.append(runs.c.fence == fence)
    move = update(runs).where(*guard).values(**_ended(ending, detail))
    return tx.execute(move).rowcount == 1


def _ended(ending: Ending, detail: str) -> dict[str, object]:
    return {
        "state": RunState.ENDED.value,
        "holder": None,
        "fence": runs.c.fence + 1,
        "lane": false(),
        "ending": ending.value,
        "detail": detail,
        "ended_at": now,
    }


def promote(tx: Connection, chat: int) -> int | None:
    """waiting -> ready, for the oldest waiter of a chat without a head. The chat is locked.

    Nothing moves in a paused chat: `resume` promotes. Returns the run that became ready.
    """
    first = (
        select(runs.c.id)
        .where(runs.c.chat == chat, runs.c.state == "waiting")
        .order_by(runs.c.order_at, runs.c.id)
        .limit(1)
        .scalar_subquery()
    )
    other = runs.alias("head")
    head = exists(select(1).where(other.c.chat == chat, other.c.state.in_(("ready", "running"))))
    paused = exists(select(1).where(chats.c.id == chat, chats.c.paused_until > now))
    move = (
        update(runs)
        .where(runs.c.id == first, runs.c.state == "waiting", ~head, ~paused)
        .values(state=RunState.READY.value, idle_since=now)
        .returning(runs.c.id)
    )
    return tx.execute(move).scalar_one_or_none()


def progress(tx: Connection, grip: Grip) -> None:
    """A step was stored: failures and deaths start again from zero. Raises StaleLease."""
    move = update(runs).where(_held(grip)).values(failures=0, deaths=0, progress_at=now)
    if tx.execute(move).rowcount != 1:
        raise StaleLease(f"run {grip.run} was taken over while a step was at work")


def mark_replied(tx: Connection, grip: Grip) -> None:
    """The reply is stored in this transaction: the agent is done. Raises StaleLease."""
    move = update(runs).where(_held(grip)).values(replied=True, lane=false(), progress_at=now)
    if tx.execute(move).rowcount != 1:
        raise StaleLease(f"run {grip.run} was taken over before its reply was stored")


def explain(tx: Connection, grip: Grip, detail: str) -> None:
    """Keep why an apology is owed, for the ending that it will lead to. The run is held."""
    tx.execute(update(runs).where(_held(grip)).values(detail=detail))


def set_aside(tx: Connection, run: int, why: str) -> None:
    """Keep a run that breaks its workers from being claimed; operators see it listed."""
    tx.execute(
        update(runs)
        .where(runs.c.id == run, runs.c.state.in_(LIVE))
        .values(
            set_aside=why,
            state=case((runs.c.state == "running", "ready"), else_=runs.c.state),
            holder=None,
            lane=false(),
            fence=runs.c.fence + 1,
        )
    )


def stranded_chats(tx: Connection, limit: int) -> Sequence[int]:
    """Chats whose runs wait behind nothing: what a crash between two moves could leave."""
    head = runs.alias("head")
    question = (
        select(runs.c.chat)
        .distinct()
        .join(chats, chats.c.id == runs.c.chat)
        .where(
            runs.c.state == "waiting",
            or_(chats.c.paused_until.is_(None), chats.c.paused_until <= now),
            ~exists(
                select(1).where(head.c.chat == runs.c.chat, head.c.state.in_(("ready", "running")))
            ),
        )
        .limit(limit)
    )
    return tx.scalars(question).all()


def correct_ending(tx: Connection, run: int, before: Ending, after: Ending, detail: str) -> bool:
    """ended(before) -> ended(after): a late witness, an operator, the person's own button."""
    move = (
        update(runs)
        .where(runs.c.id == run, runs.c.state == "ended", runs.c.ending == before.value)
        .values(ending=after.value, detail=detail)
    )
    return tx.execute(move).rowcount == 1


def find(tx: Connection, run: int, *, lock: bool = False) -> Run | None:
    """One run, or None."""
    question = select(*_COLUMNS).where(runs.c.id == run)
    if lock:
        question = question.with_for_update(key_share=True)
    row = tx.execute(question).first()
    return None if row is None else _run(row)


def last_ended(tx: Connection, chat: int, endings: Sequence[Ending]) -> Run | None:
    """The chat's newest run that ended in one of these ways, or None."""
    row = tx.execute(
        select(*_COLUMNS)
        .where(
            runs.c.chat == chat,
            runs.c.state == "ended",
            runs.c.ending.in_([e.value for e in endings]),
        )
        .order_by(runs.c.id.desc())
        .limit(1)
    ).first()
    return None if row is None else _run(row)


def album_of(tx: Connection, run: int) -> str:
    """The album that a run gathers; empty for none."""
    return str(tx.scalars(select(runs.c.album).where(runs.c.id == run)).one())


def touch_unclaimed(tx: Connection, run: int) -> bool:
    """Whether nobody has claimed this run; locks it until the transaction ends."""
    unclaimed = (
        select(1)
        .where(runs.c.id == run, runs.c.attempts == 0, runs.c.state.in_(("waiting", "ready")))
        .with_for_update(key_share=True)
    )
    return tx.execute(unclaimed).first() is not None


def count_messages(tx: Connection, run: int, messages: int) -> None:
    """How many messages a run answers that was made for several at once."""
    tx.execute(update(runs).where(runs.c.id == run).values(messages=messages))


def held_by(tx: Connection, holder: int) -> Sequence[Run]:
    """The runs that are running under this holder."""
    question = select(*_COLUMNS).where(runs.c.holder == holder, runs.c.state == "running")
    return [_run(row) for row in tx.execute(question)]


def live_in_chat(tx: Connection, chat: int) -> Sequence[Run]:
    """The chat's runs that have not ended: the head first, then the waiters in their order."""
    question = (
        select(*_COLUMNS)
        .where(runs.c.chat == chat, runs.c.state.in_([s.value for s in LIVE]))
        .order_by(case((runs.c.state == "waiting", 1), else_=0), runs.c.order_at, runs.c.id)
    )
    return [_run(row) for row in tx.execute(question)]


def oldest_due(tx: Connection) -> float | None:
    """Seconds for which the oldest due ready run has waited; None when there is none."""
    due = select(
        func.min(
            case(
                (runs.c.not_before > runs.c.idle_since, runs.c.not_before), else_=runs.c.idle_since
            )
        )
    ).where(runs.c.state == "ready", runs.c.not_before <= now, runs.c.set_aside.is_(None))
    since = tx.scalar(due)
    return None if since is None else read_clock(tx) - float(since)


def down_accounts(tx: Connection) -> Sequence[int]:
    """Accounts that can't send now."""
    return tx.scalars(select(accounts.c.id).where(accounts.c.down_since.is_not(None))).all()
