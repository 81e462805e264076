"""Signs of work: the typing indicator while an agent is called, and one notice if it takes long."""

from __future__ import annotations

import asyncio
import logging

from bot.delivery import notices
from bot.delivery.context import WorkerContext
from bot.domain.errors import DatabaseUnavailable, StaleLease
from bot.leases.runtime import Runtime
from bot.supervisor import log_error
from bot.texts import Text
from storage import chats, outbox, runs
from storage.notify import READY
from storage.outbox import Notice
from storage.statements import clock
from storage.statements.tx import Tx
from storage.views.evidence import Case

_log = logging.getLogger("answerback.typing")


class WorkSigns:
    """The signs of all turns of a process. One timer begins them all, so a turn that ends before
    its sign is due costs no task."""

    def __init__(self, ctx: WorkerContext) -> None:
        self._ctx = ctx
        self._after = ctx.rt.terms.work.typing_after
        self._line: dict[int, tuple[float, Case]] = {}
        """The signs that are not due yet, by run, in the order in which they become due (monotonic
        seconds)."""
        self._shown: dict[int, asyncio.Task[None]] = {}

    def begin(self, case: Case) -> None:
        """Show that this run is worked on: after a moment, or at once if it is not the first
        attempt."""
        if case.run.attempts == 1:
            self._line[case.run.id] = self._ctx.rt.clock.monotonic() + self._after, case
        else:
            self._show(case, waited=0.0)

    async def end(self, run: int) -> None:
        """Stop showing it."""
        self._line.pop(run, None)
        task = self._shown.pop(run, None)
        if task is not None:
            task.cancel()
            # Not awaited directly: its cancellation would look like our own.
            await asyncio.wait((task,))
            log_error(task)

    async def look(self) -> float:
        """Begin the signs that are due. Returns the seconds until the next look."""
        while self._line:
            due, case = next(iter(self._line.values()))
            if (left := due - self._ctx.rt.clock.monotonic()) > 0:
                return left
            del self._line[case.run.id]
            self._show(case, waited=self._after)
        return self._after

    def _show(self, case: Case, waited: float) -> None:
        shown = _show_work(self._ctx, case, waited)
        self._shown[case.run.id] = asyncio.create_task(shown, name=f"typing-{case.run.id}")


async def _show_work(ctx: WorkerContext, case: Case, waited: float) -> None:
    """Show it until cancelled. `waited`: the seconds since the turn began."""
    async with asyncio.TaskGroup() as both:
        both.create_task(_type(ctx, case))
        both.create_task(_say_still_working(ctx, case, waited))


async def _type(ctx: WorkerContext, case: Case) -> None:
    """Show the indicator while the lease holds, unless the account is down."""
    channel = ctx.rt.channels[case.run.account]
    every = channel.traits.typing_every
    while ctx.lease.holds() and not case.chat.down:
        await channel.typing(case.recipient)
        if every is None:
            return
        await ctx.rt.clock.sleep(every)


async def _say_still_working(ctx: WorkerContext, case: Case, waited: float) -> None:
    """Post one notice once the person has waited long without hearing anything."""
    rt = ctx.rt
    left = case.run.created_at + rt.terms.work.still_working_after - case.evidence.now
    while True:
        await rt.clock.sleep(max(left, rt.terms.work.typing_after) - waited)
        waited = 0.0
        try:
            left = await rt.db.write(_post_notice, rt, case)
        except (DatabaseUnavailable, StaleLease) as error:
            _log.info("run %s: no still-working note: %s", case.run.id, error)
            return
        if left <= 0:
            rt.wakeups.tell(READY)
            return


def _post_notice(tx: Tx, rt: Runtime, case: Case) -> float:
    """Post the notice, or return the seconds until it is due: counted from the message's
    arrival, or from the last words that reached the chat since."""
    run = case.run
    runs.hold(tx, run.claim)
    since = max(run.created_at, outbox.last_sent_at(tx, run.chat) or 0.0)
    left = since + rt.terms.work.still_working_after - clock.read(tx)
    if left > 0:
        return left
    chat = chats.get(tx, run.chat)
    words = notices.plain(rt, chat, Text.STILL_WORKING)
    notices.say(tx, rt, chat, words, run=run.id, notice=Notice.STILL_WORKING)
    return 0.0
