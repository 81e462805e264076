"""The recovery pass: release what dead holders held, so that living ones go on with it.

A run whose holder is gone is only *released* here: it is ready again, under a higher fence and with
the death counted. Whoever claims it next gathers the evidence and asks `judge()`, exactly as for a
new run, so there is only one path that decides. A standalone part that a dead holder was sending
becomes uncertain. The pass (`sweep`) may be interrupted anywhere, and simply runs again.

Two more things are put right here, whether anybody died or not: due times follow the database's
clock if somebody set it, and a chat whose runs wait although it has no head gets one (`repair`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.leases.checkpoints import Checkpoint
from bot.leases.keeper import LeaseKeeper
from bot.leases.runtime import Runtime
from storage import audit_log, holders, outbox, retention, runs
from storage import chats as chat_rows
from storage.notify import READY
from storage.runs import Released
from storage.statements import clock
from storage.statements.tx import Tx

_log = logging.getLogger("answerback.recover")
_CHATS_AT_ONCE = 1000
"""Chats with waiting runs that one page of a repair looks at."""
_FORGET_HOLDERS_AFTER = 86_400.0
"""Seconds for which the row of a holder that is gone is kept."""

MayJudge = Callable[[float], bool]
"""Tells, given what the lease clock shows, whether holders may be called dead now."""


@dataclass(frozen=True, slots=True)
class Swept:
    """The outcome of one pass: the runs that it released, and the number of parts that it made
    uncertain."""

    released: Sequence[Released] = ()
    doubted: int = 0


async def sweep(rt: Runtime, lease: LeaseKeeper) -> Swept:
    """Release what dead holders held. Does nothing while this process may not judge.

    Raises DatabaseUnavailable.
    """
    if lease.holds():
        await _follow(rt, lease)
    if not lease.may_judge():
        return Swept()
    with rt.tracer.span("sweep") as span:
        swept = await _sweep_all(rt, lease.terms.seconds, lease.name, lease.may_judge_at)
        span.tell(released=len(swept.released), doubted=swept.doubted)
    if swept.released or swept.doubted:
        _log.warning(
            "released %d runs of dead holders, %d parts uncertain",
            len(swept.released),
            swept.doubted,
        )
        rt.observer.takeovers.inc(len(swept.released))
        await rt.reached(Checkpoint.RELEASED)
        rt.wakeups.tell(READY)
    return swept


async def pass_by_hand(rt: Runtime, who: str) -> Swept:
    """One pass that an operator asked for, in a process without a lease of its own.

    Raises DatabaseUnavailable.
    """
    swept = await _sweep_all(rt, rt.terms.work.lease.seconds, who, lambda _: True)
    if swept.released or swept.doubted:
        rt.wakeups.tell(READY)
    return swept


async def _sweep_all(rt: Runtime, lease_seconds: float, who: str, judges: MayJudge) -> Swept:
    """One pass in transactions of a bounded size."""
    swept = Swept()
    while True:
        more = await rt.db.write(_sweep, lease_seconds, who, judges)
        swept = Swept((*swept.released, *more.released), swept.doubted + more.doubted)
        if len(more.released) < runs.RELEASED_AT_ONCE:
            return swept


async def _follow(rt: Runtime, lease: LeaseKeeper) -> None:
    """Move due times with the database's clock if somebody set it; one of the processes that
    notice does so."""
    due_clock = lease.due_clock
    asked = rt.clock.monotonic()
    found = await rt.db.read(retention.due_times, due_clock.machine)
    if step := due_clock.step(found, asked):
        if await rt.db.write(_follow_clock, found.followed, step):
            due_clock.has_followed(found, step)
            _log.warning("the clock of due times was set by %.0f s", step)
            rt.wakeups.tell(READY)
    elif (base := due_clock.to_keep(found)) is not None:
        await rt.db.write(retention.keep_base, due_clock.machine, base)


def _follow_clock(tx: Tx, followed: float, step: float) -> bool:
    """Move all due times and deadlines, so that nobody waits an hour longer because the clock was
    set back by one, or runs out of time because it was set forward. False: another process did."""
    if not retention.follow_clock(tx, followed, step):
        return False
    chat_rows.follow_clock(tx, step)
    runs.follow_clock(tx, step)
    outbox.follow_clock(tx, step)
    return True


def _sweep(tx: Tx, lease_seconds: float, who: str, judges: MayJudge) -> Swept:
    if not judges(clock.read_lease(tx)):
        return Swept()
    holders.mark_overdue_dead(tx, lease_seconds)
    released = _release(tx, who)
    return Swept(released, len(outbox.doubt_orphans(tx)))


def release_chat(tx: Tx, chat: int, who: str) -> bool:
    """Release the run of a chat if its holder is marked dead, for whoever comes across it. The chat
    is locked. Neither judges holders or runs, nor sends. True: a worker should look."""
    return bool(_release(tx, who, chat))


def _release(tx: Tx, who: str, chat: int | None = None) -> Sequence[Released]:
    released = runs.release_dead(tx, chat)
    for run in released:
        why = "its holder died" + ("" if run.counted else ", not counted")
        audit_log.note(tx, who, "released", why, run=run.run, chat=run.chat)
    return released


async def repair(rt: Runtime) -> int:
    """Promote a run in every chat that has waiting runs and no head; returns how many chats."""
    found, after = 0, 0
    while True:
        more, after = await repair_page(rt, after)
        found += more
        if not after:
            return found


async def repair_page(rt: Runtime, after: int) -> tuple[int, int]:
    """As `repair`, for the next page of chats with ids above `after`, so that the cost of a call is
    bounded. Returns the number of chats, and where the next page begins (0: this was the last).
    Also forgets holders that are long gone."""
    stranded, until = await rt.db.read(_page, after)
    for chat in stranded:
        await rt.db.write(_promote, chat)
    await rt.db.write(holders.forget_gone, _FORGET_HOLDERS_AFTER)
    if stranded:
        rt.wakeups.tell(READY)
    return len(stranded), until


def _page(tx: Tx, after: int) -> tuple[Sequence[int], int]:
    stranded = runs.stranded_chats(tx, _CHATS_AT_ONCE, after)
    return stranded, runs.waiting_until(tx, _CHATS_AT_ONCE, after) or 0


def _promote(tx: Tx, chat: int) -> None:
    chat_rows.lock(tx, chat)
    runs.promote(tx, chat)
