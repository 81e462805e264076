"""Reconciling what this process knows with the rows: the answer to a commit can get lost.

A claim, a mark or a settlement may be committed although its answer never arrived (the connection
broke, the caller was cancelled). Then the rows name this process for something that it does not
know of, or a turn goes on whose run is no longer ours. A single look can be wrong, since answers
take time to arrive; only what looks wrong for a while is acted on.

This is about the database alone. Asking a platform about an uncertain part is a look: see
`bot/delivery/deliver.py` for parts of a run, `bot/delivery/standalone.py` for the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Generic, TypeVar

from bot.delivery.context import WorkerContext
from bot.delivery.finish import give_back
from bot.delivery.outcome import reconsider
from bot.domain.delivery import PartState
from bot.domain.errors import StaleLease
from bot.domain.ports import Clock
from bot.domain.run import Run
from storage import chats, outbox, runs
from storage.notify import READY
from storage.outbox import Attempt, Part
from storage.statements.tx import Tx

_log = logging.getLogger("answerback.reconcile")
_LOST_FOR = 0.1
"""Seconds after which a turn is stopped whose run is not ours: longer than a turn takes to end once
its settlement is committed."""
_UNKNOWN_FOR = 2.0
"""Seconds after which a run or part that only the rows call ours is given back: longer than an
answer is on its way."""

K = TypeVar("K")


class _Lasting(Generic[K]):
    """A set of things that look wrong, each with the moment since which every look found it so."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._since: dict[K, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def seen(self, wrong: Collection[K]) -> list[K]:
        """Remember what looks wrong now. Returns those that have looked wrong for `seconds`."""
        now = self._clock.monotonic()
        self._since = {key: self._since.get(key, now) for key in wrong}
        return [key for key, since in self._since.items() if now - since >= self._seconds]


class Reconciler:
    """Compares a worker's turns and calls with the rows under its holder."""

    def __init__(self, ctx: WorkerContext) -> None:
        self._ctx = ctx
        self._lost: _Lasting[asyncio.Task[None]] = _Lasting(ctx.rt.clock, _LOST_FOR)
        self._unknown: _Lasting[Run] = _Lasting(ctx.rt.clock, _UNKNOWN_FOR)
        self._uncalled: _Lasting[Attempt] = _Lasting(ctx.rt.clock, _UNKNOWN_FOR)

    @property
    def again_in(self) -> float:
        """Seconds until the next look."""
        return 1.5 * _LOST_FOR if len(self._lost) else self._ctx.rt.terms.work.poll

    async def look(self, turns: Mapping[int, asyncio.Task[None]]) -> None:
        """Stop turns whose run was ended or taken by somebody else; give back runs and parts
        that the rows call ours and that nobody here works on.

        Raises DatabaseUnavailable.
        """
        lease = self._ctx.lease
        if not lease.holds():
            return
        # Copied before the rows are read: a turn that begins later may not be in their snapshot.
        before = dict(turns)
        held, sending = await self._ctx.rt.db.read(_held_and_sending, lease.holder())
        lost = [task for run, task in before.items() if run not in held]
        for task in self._lost.seen(lost):
            task.cancel()
        unknown = [run for run in held.values() if run.id not in turns]
        for run in self._unknown.seen(unknown):
            why = "claimed by a process that did not hear of it"
            try:
                await self._ctx.rt.db.write(give_back, run, 0.0, why)
            except StaleLease as error:
                _log.info("run %d: %s", run.id, error)
            self._ctx.rt.wakeups.tell(READY)
        await self._put_back(sending, turns)

    async def _put_back(self, sending: Sequence[Part], turns: Mapping[int, object]) -> None:
        """Put back parts that are marked as being sent, but whose call nobody makes."""
        calling = self._ctx.sends.calling
        uncalled = {
            Attempt(part.id, part.attempts): part
            for part in sending
            if part.id not in calling and (part.standalone or part.run not in turns)
        }
        rt = self._ctx.rt
        for attempt in self._uncalled.seen(uncalled):
            await rt.db.write(_never_sent, uncalled[attempt])
            rt.wakeups.tell(READY)


def _held_and_sending(tx: Tx, holder: int) -> tuple[Mapping[int, Run], Sequence[Part]]:
    return {run.id: run for run in runs.held_by(tx, holder)}, outbox.sending_by(tx, holder)


def _never_sent(tx: Tx, part: Part) -> None:
    """Put a part back whose call was never made, unless an outcome was recorded meanwhile."""
    chats.lock(tx, part.chat)
    now = outbox.get(tx, part.id)
    if now is None or now.state is not PartState.SENDING:
        return
    reason = "it was marked as being sent, and never was"
    outbox.not_sent(tx, Attempt(part.id, part.attempts), 0.0, reason, "")
    reconsider(tx, part.run)
