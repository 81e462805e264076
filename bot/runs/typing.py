"""Showing that somebody is at work: typing while the turn is alive, one note when it is long."""

from __future__ import annotations

import logging

from bot.delivery import notices
from bot.delivery.context import WorkerContext
from bot.domain.errors import DatabaseUnavailable, StaleLease
from bot.leases.runtime import Runtime
from bot.texts import Text
from storage import chats, outbox, runs
from storage.engine import clock
from storage.engine.tx import Tx
from storage.notify import READY
from storage.outbox import Notice
from storage.views.evidence import Case

_log = logging.getLogger("answerback.typing")


async def show_typing(ctx: WorkerContext, case: Case) -> None:
    """Show the indicator while the lease holds: after a moment, or at once when an earlier attempt
    had shown it."""
    channel = ctx.rt.channels[case.run.account]
    every = channel.traits.typing_every
    if case.run.attempts == 1:
        await ctx.rt.clock.sleep(ctx.rt.terms.work.typing_after)
    while ctx.lease.holds():
        await channel.typing(case.recipient)
        if every is None:
            return
        await ctx.rt.clock.sleep(every)


async def say_still_working(ctx: WorkerContext, case: Case) -> None:
    """Post one note, when the person has waited so long and heard nothing."""
    rt = ctx.rt
    left = case.run.created_at + rt.terms.work.still_working_after - case.evidence.now
    while True:
        await rt.clock.sleep(max(left, rt.terms.work.typing_after))
        try:
            left = await rt.db.write(_post_note, rt, case)
        except (DatabaseUnavailable, StaleLease) as error:
            _log.info("run %s: no still-working note: %s", case.run.id, error)
            return
        if left <= 0:
            rt.wakeups.tell(READY)
            return


def _post_note(tx: Tx, rt: Runtime, case: Case) -> float:
    """Post the note, or return the seconds until it is due: counted from the message's
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
