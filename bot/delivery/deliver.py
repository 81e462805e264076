"""Delivery of a run's stored parts: everything that happens between two transactions.

That is waiting for a permit of the rate limits, calling the provider, looking a part up in its list
and waiting. The transaction that records each result and decides what is next is `advance`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from bot.delivery.advance import (
    RECEIVE,
    Delivery,
    Ended,
    Halt,
    InCall,
    Look,
    Next,
    Pause,
    Received,
    Result,
    Send,
    advance,
)
from bot.delivery.context import WorkerContext
from bot.delivery.finish import give_back
from bot.delivery.outcome import alarm
from bot.delivery.rate_limit import Permit
from bot.delivery.status import ask
from bot.domain.delivery import Lookup, NotSent, Sent
from bot.domain.errors import StaleLease
from bot.domain.ports import Recipient, SendRef
from bot.domain.run import Run
from bot.leases.checkpoints import Checkpoint
from bot.leases.runtime import Runtime
from storage import outbox
from storage.notify import part_topic, within
from storage.outbox import Attempt

_CALL_CHECKED = 5.0
"""Seconds between two looks at the rows while a call that an earlier turn began is under way."""


async def deliver(ctx: WorkerContext, run: Run, to: Recipient, first: Send | None) -> None:
    """Send the parts of a run that have not been sent. `first` is one that is already marked as
    being sent.

    Returns when the run has ended or was given back. Raises StaleLease when it was taken over; the
    outcome of a call that is still under way is then recorded by `ctx.sends`.
    """
    limiter = ctx.limiters[run.account]
    act: Next = first or await _advance(ctx, run, to, permit=await limiter.permit(to))
    while True:
        match act:
            case Send(part, address, more):
                to = replace(to, address=address)
                async with ctx.sends.call(ctx.rt.channels[run.account], to, part) as outcome:
                    result = Result(Attempt(part.id, part.attempts), outcome)
                    permit = await limiter.permit(to) if more else None
                    act = await _advance(ctx, run, to, result, permit)
            case Halt.NEEDS_PERMIT:
                patience = ctx.rt.retry.short_wait
                permit = await limiter.permit(to, patience, returned=run.attempts > 1)
                if not permit.taken:
                    await ctx.persist(give_back, run, permit.wait, "the platform's rate limit")
                    return
                act = await _advance(ctx, run, to, permit=permit)
            case Look() | InCall() | Pause():
                found = await _outside(ctx, to, act)
                act = await _advance(ctx, run, to, found, await limiter.permit(to))
            case Halt.LOST:
                raise StaleLease(f"run {run.id} was taken over")
            case Ended() | Halt.GAVE_BACK:
                return
            case other:
                assert_never(other)


async def _outside(ctx: WorkerContext, to: Recipient, act: Look | InCall | Pause) -> Result | None:
    """Ask the provider, or wait, before the next transaction."""
    match act:
        case Look():
            return await look_up(ctx.rt, act, to)
        case InCall(part):
            await ctx.sends.over(part, _CALL_CHECKED)
        case Pause(seconds, int() as awaited):
            await _reported(ctx.rt, awaited, seconds)
        case Pause(seconds):
            await ctx.rt.clock.sleep(seconds)
        case other:
            assert_never(other)
    return None


async def _reported(rt: Runtime, part: int, seconds: float) -> None:
    """Wait until the platform reports on a part; ask it if no report comes in time."""
    async with rt.wakeups.expecting(part_topic(part)) as told:
        # A report that came before we listened woke nobody.
        found = await rt.db.read(outbox.get, part)
        if found is None or found.confirmed or await within(told, seconds):
            return
    await ask(rt, part)


async def _advance(
    ctx: WorkerContext,
    run: Run,
    to: Recipient,
    result: Result | None = None,
    permit: Permit | None = None,
) -> Next:
    """Run one transaction of delivery, then tell of what it changed. An unused permit is
    refunded."""
    rt = ctx.rt
    act: Next = Halt.LOST
    heir = ctx.places.keep(run) if result is not None and permit is None else None
    try:
        ctx.lease.holder()
        delivery = Delivery(rt, run, to, permit is not None and permit.taken, ctx.sends.calls, heir)
        match result:
            case Result(attempt, Sent() as sent):
                act, doubled = await ctx.share(RECEIVE, Received(delivery, attempt, sent))
            case _:
                act, doubled = await ctx.persist(advance, delivery, result)
    finally:
        if heir is not None:
            ctx.places.let_go()
        if permit is not None and not isinstance(act, Send):
            permit.refund()
    if result is not None:
        alarm(rt, result.attempt.part, doubled=doubled)
        goes_on = isinstance(act, Send | Pause) or act is Halt.NEEDS_PERMIT
        if isinstance(result.outcome, Sent) and goes_on:
            await rt.reached(Checkpoint.PART_RECORDED)
    if isinstance(act, Ended):
        ctx.ended(run, act.ending, ready=act.ready, follows=act.follows)
        await rt.reached(Checkpoint.SETTLED)
    return act


async def look_up(rt: Runtime, look: Look, to: Recipient) -> Result:
    """Ask the provider whether the part arrived, at each address that the chat has had."""
    part = look.part
    ref = SendRef(part.id, part.attempts, part.started_at)
    found: Sent | NotSent | Lookup = Lookup.NOT_FOUND
    for address in look.addresses:
        at = replace(to, address=address)
        seen = await rt.channels[part.account].look_up(at, part.body, ref, look.owned)
        if isinstance(seen, Sent):
            found = seen
            break
        found = found if found is Lookup.CANNOT_TELL else seen
    return Result(Attempt(part.id, part.attempts, part.looks), found)
