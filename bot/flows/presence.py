"""Showing that somebody is at work: typing while the turn is alive, one note when it is long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from bot.domain.errors import DatabaseUnavailable, StaleLease
from bot.flows import notices
from bot.flows.desk import Desk
from bot.flows.evidence import Case
from bot.flows.runtime import Runtime
from bot.texts import Text
from storage import chats, runs
from storage.outbox import Notice
from storage.tx import Tx
from storage.wakeup import READY

_log = logging.getLogger("answerback.presence")


@asynccontextmanager
async def present(desk: Desk, case: Case) -> AsyncIterator[None]:
    """Show presence for as long as the body runs and the lease holds."""
    showing = asyncio.create_task(_show(desk, case), name=f"presence-{case.run.id}")
    try:
        yield
    finally:
        showing.cancel()
        with suppress(asyncio.CancelledError):
            await showing


async def _show(desk: Desk, case: Case) -> None:
    async with asyncio.TaskGroup() as both:
        both.create_task(_typing(desk, case))
        both.create_task(_note(desk, case))


async def _typing(desk: Desk, case: Case) -> None:
    channel = desk.rt.channels[case.run.account]
    every = channel.traits.typing_every
    if case.run.attempts == 1:
        await desk.rt.clock.sleep(desk.rt.terms.work.typing_after)
    while desk.lease.holds():
        await channel.typing(case.recipient)
        if every is None:
            return
        await desk.rt.clock.sleep(every)


async def _note(desk: Desk, case: Case) -> None:
    """One "still working" note, counted from the message's arrival, not from this attempt."""
    waited = case.evidence.now - case.run.created_at
    await desk.rt.clock.sleep(max(0.0, desk.rt.terms.work.still_working_after - waited))
    try:
        posted = await desk.rt.db.write(_post_note, desk.rt, case)
    except (DatabaseUnavailable, StaleLease) as error:
        _log.info("run %s: no still-working note: %s", case.run.id, error)
        return
    if posted is not None:
        desk.rt.wakeups.tell(READY)


def _post_note(tx: Tx, rt: Runtime, case: Case) -> int | None:
    runs.hold(tx, case.run.grip)
    chat = chats.get(tx, case.run.chat)
    return notices.say(
        tx,
        rt,
        chat,
        notices.plain(rt, chat, Text.STILL_WORKING),
        run=case.run.id,
        notice=Notice.STILL_WORKING,
    )
