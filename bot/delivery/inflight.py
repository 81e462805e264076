"""Calls to providers that are under way: each has an owner until its outcome is written.

A call that has begun is never cut: when the turn that made it is cancelled (a stop, a lost
lease, a shutdown), the call goes on here and its outcome is written when it comes. Only the
end of the shutdown grace gives up on it, and then the part is recorded as uncertain.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from bot.delivery.outcome import alarm, reconsider, record
from bot.delivery.rate_limit import Pacer
from bot.delivery.telemetry import sending, told
from bot.domain.delivery import Lookup, NotSent, Outcome, Unknown
from bot.domain.errors import DatabaseUnavailable
from bot.domain.ports import Channel, Recipient, SendRef
from bot.leases.checkpoints import Checkpoint
from bot.leases.keeper import LeaseKeeper
from bot.leases.runtime import Runtime
from storage import chats
from storage.engine.tx import Tx
from storage.notify import READY
from storage.outbox import Attempt, Part

_log = logging.getLogger("answerback.sends")


@dataclass(frozen=True, slots=True)
class _Call:
    part: Part
    task: asyncio.Task[Outcome]

    @property
    def attempt(self) -> Attempt:
        return Attempt(self.part.id, self.part.attempts)

    def cut(self) -> Outcome:
        """Give up on the call: what it told if it is over, else that nobody knows."""
        if self.task.done() and not self.task.cancelled():
            return self.task.result()
        self.task.cancel()
        return Unknown("the process left while it was being sent")


class Sends:
    """Owns this process's calls to providers."""

    def __init__(self, rt: Runtime, lease: LeaseKeeper, pacers: Mapping[int, Pacer]) -> None:
        self._rt = rt
        self._lease = lease
        self._pacers = pacers
        self._calls: dict[Attempt, _Call] = {}
        self._writers: set[asyncio.Task[None]] = set()
        self._moved = asyncio.Event()
        self._hurried = False

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def calling(self) -> frozenset[int]:
        """The parts whose call is under way here, or whose outcome is not written yet."""
        return frozenset(attempt.part for attempt in self._calls)

    @asynccontextmanager
    async def call(self, channel: Channel, to: Recipient, part: Part) -> AsyncIterator[Outcome]:
        """Send the part once; the body writes the outcome down.

        When the caller is cancelled in the call, or the body can't write, the outcome is
        written by this owner, and the caller's exception goes on.
        """
        task = asyncio.create_task(self._send(channel, to, part), name=f"send-{part.id}")
        call = _Call(part, task)
        self._calls[call.attempt] = call
        try:
            yield await asyncio.shield(task)
        except BaseException:
            writer = asyncio.create_task(self._write_later(call), name=f"outcome-{part.id}")
            self._writers.add(writer)
            writer.add_done_callback(self._writers.discard)
            raise
        self._over(call)

    async def finish(self, grace: float) -> None:
        """Wait for what is under way, at most `grace` seconds; record the rest as uncertain.
        Raises DatabaseUnavailable."""
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while self._calls and not self._hurried:
                    self._moved.clear()
                    await self._moved.wait()
        for writer in tuple(self._writers):
            writer.cancel()
        for call in tuple(self._calls.values()):
            await self._write(call, call.cut())
            self._over(call)

    def hurry(self) -> None:
        """Wait for nothing any more: whoever asked to stop asked again."""
        self._hurried = True
        self._moved.set()

    def abandon(self) -> None:
        """Drop every call without a word, as the death of the process would."""
        for task in [*(c.task for c in self._calls.values()), *self._writers]:
            task.cancel()

    async def _send(self, channel: Channel, to: Recipient, part: Part) -> Outcome:
        await self._rt.reached(
            Checkpoint.STANDALONE_BEFORE_SEND if part.standalone else Checkpoint.BEFORE_SEND
        )
        await self._pacers[part.account].leave(to)
        if not self._lease.holds():
            return NotSent("the lease ran out before the call")
        ref = SendRef(part.id, part.attempts, part.started_at)
        with sending(self._rt, part) as span:
            try:
                outcome = await channel.send(to, part.body, ref)
            except Exception as error:  # noqa: BLE001 - the call's edge: what it did is unknown
                _log.exception("sending part %s broke the channel", part.id)
                outcome = Unknown(f"the channel broke: {type(error).__name__}")
            told(span, outcome)
        self._rt.observer.sends.labels(channel.name.value, type(outcome).__name__).inc()
        if isinstance(outcome, NotSent) and outcome.limited:
            named = outcome.retry_after or 0.0
            self._rt.observer.limit_wait.labels(channel.name.value).observe(named)
        await self._rt.reached(
            Checkpoint.STANDALONE_AFTER_SEND if part.standalone else Checkpoint.AFTER_SEND
        )
        return outcome

    async def _write_later(self, call: _Call) -> None:
        """Write the outcome of a call whose turn is gone, however long the database is away."""
        outcome = await call.task
        tries = 0
        while True:
            try:
                await self._write(call, outcome)
            except DatabaseUnavailable:
                tries += 1
                wait = self._rt.retry.database.after(tries, self._rt.clock.jitter())
                await self._rt.clock.sleep(wait)
            else:
                self._over(call)
                self._rt.wakeups.tell(READY)
                return

    async def _write(self, call: _Call, outcome: Outcome) -> None:
        doubled = await self._rt.db.write(
            record_alone, self._rt, call.part, call.attempt, outcome, self._rt.clock.jitter()
        )
        alarm(self._rt, call.part.id, doubled=doubled)

    def _over(self, call: _Call) -> None:
        self._calls.pop(call.attempt, None)
        self._moved.set()


def record_alone(
    tx: Tx, rt: Runtime, part: Part, attempt: Attempt, outcome: Outcome | Lookup, jitter: float
) -> bool:
    """Write what a provider said of a part that no running turn of ours looks after. True: the
    person has it twice."""
    chat = chats.lock(tx, part.chat)
    doubled = record(tx, rt, attempt, outcome, chat, jitter)
    if part.run is not None:
        reconsider(tx, part.run)
    return doubled
