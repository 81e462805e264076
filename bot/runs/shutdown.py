"""Graceful shutdown: stop claiming, let turns end, give the rest back, so that nobody waits.

A process that is told to stop has a grace period. Within it, running turns end by themselves and
sends that are under way get their receipts. Then the runs that are left become ready again, with
nothing counted against them, and the lease is released so that another process takes them at once.
"""

from __future__ import annotations

import asyncio
import logging

from bot.delivery.context import WorkerContext
from bot.delivery.outcome import reconsider
from bot.domain.errors import DatabaseUnavailable
from bot.leases.checkpoints import Checkpoint
from bot.runs.worker import Worker
from storage import accounts, audit_log, outbox, runs
from storage import holders as holder_rows
from storage.notify import READY
from storage.outbox import Attempt
from storage.statements.tx import Tx

_log = logging.getLogger("answerback.shutdown")
_FOR_SENDS = 2.0
"""Seconds at the end of the grace period that are left to sends whose turns were cancelled."""
_FOR_HINTS = 0.5
"""Seconds that the last hint to other processes may take."""


async def shut_down(ctx: WorkerContext, worker: Worker | None, grace: float) -> None:
    """Drain within `grace` seconds and release the lease. If the database is away, nothing is
    raised: the lease runs out by itself."""
    ends_at = ctx.rt.clock.monotonic() + grace
    if worker is not None:
        worker.stop_claiming()
    await _drain(ctx)
    if worker is not None:
        await worker.finish(max(0.0, grace - _FOR_SENDS))
    left = ends_at - ctx.rt.clock.monotonic()
    try:
        async with asyncio.timeout(max(0.0, left) + _FOR_SENDS):
            await ctx.sends.finish(max(_FOR_SENDS / 2, left))
            await _leave(ctx)
    except (DatabaseUnavailable, TimeoutError) as error:
        _log.warning("leaving without a database, the lease will run out: %s", error)
    finally:
        ctx.lease.forget_name()


async def _drain(ctx: WorkerContext) -> None:
    """Tell the others that we leave. Without a database the turns still get their time: it may
    come back."""
    try:
        async with asyncio.timeout(_FOR_SENDS):
            await ctx.lease.drain()
    except (DatabaseUnavailable, TimeoutError) as error:
        _log.warning("could not say that this process leaves: %s", error)


async def _leave(ctx: WorkerContext) -> None:
    session = ctx.lease.leave()
    if session is not None and session.window.holds(ctx.rt.clock.monotonic()):
        given = await ctx.rt.db.write(give_back_all, session.holder, ctx.lease.name)
        if given:
            _log.info("gave back %d runs", given)
            await ctx.rt.reached(Checkpoint.GIVEN_BACK)
    elif session is not None:
        await ctx.rt.db.renew(holder_rows.retire, session.holder)
    ctx.lease.forget_name()
    ctx.rt.wakeups.tell(READY)
    await ctx.rt.wakeups.flush(_FOR_HINTS)


def give_back_all(tx: Tx, holder: int, who: str) -> int:
    """End the holder's session: its runs become ready again, uncounted, and parts that it marked
    without calling the provider become pending again. Returns the number of runs."""
    holder_rows.retire(tx, holder)
    runs.lock_chats_of(tx, holder)  # A cancelled turn may still be marking a part.
    sending = outbox.sending_by(tx, holder)
    given = runs.release_own(tx, holder)
    for run in given:
        audit_log.note(tx, who, "given back", "the process leaves", run=run.run, chat=run.chat)
    # Every call has an outcome or was given up: for what is still marked none was made.
    for part in sending:
        outbox.not_sent(tx, Attempt(part.id, part.attempts), 0.0, "the process left before", "")
        reconsider(tx, part.run)
    accounts.leave_all_polling(tx, holder)
    return len(given)
