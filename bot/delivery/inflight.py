"""Calls to providers that are under way: each has an owner until its outcome is recorded.

A call that has begun is never interrupted. When the turn that made it is cancelled (by a stop, a
lost lease or a shutdown), the call goes on here, and its outcome is recorded when it arrives. Only
when the grace period of a shutdown is over is a call given up, and its part recorded as uncertain.
If recording an outcome fails, the part becomes uncertain as well, so that none stays `sending` for
ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from bot.delivery.outcome import alarm, record_alone
from bot.delivery.rate_limit import RateLimiter
from bot.domain.delivery import NotSent, Outcome, Sent, Unknown
from bot.domain.errors import DatabaseUnavailable, StaleLease
from bot.domain.ports import STILL_OURS, Channel, Recipient, SendRef
from bot.leases.checkpoints import Checkpoint
from bot.leases.keeper import LeaseKeeper
from bot.leases.runtime import Runtime
from bot.observability.context import Fact, bind
from bot.observability.tracing import Span
from storage import chats, outbox
from storage.notify import READY
from storage.outbox import Attempt, Part
from storage.statements.tx import Tx

_log = logging.getLogger("answerback.sends")
_PUT_OFF = 1.0
"""Seconds until the next attempt at a part whose call was not begun."""


@dataclass(slots=True, eq=False)
class _Call:
    """One call. `begun`: the provider may have been reached."""

    part: Part
    task: asyncio.Task[Outcome] = field(init=False)
    begun: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def attempt(self) -> Attempt:
        return Attempt(self.part.id, self.part.attempts)

    async def outcome(self) -> Outcome:
        """The outcome of the call; if our own code broke it, the part may have arrived."""
        try:
            return await self.task
        except Exception as error:  # noqa: BLE001 - whatever broke it, it must end as a value
            return Unknown(f"the send broke: {type(error).__name__}")

    async def cut(self) -> Outcome:
        """Give up on the call; returns its outcome, or as much as is known without one."""
        if self.task.done() and not self.task.cancelled():
            return await self.outcome()
        self.task.cancel()
        if not self.begun:
            return NotSent("the process left before the call")
        return Unknown("the process left while it was being sent")


class InFlightSends:
    """The owner of this process's calls to providers."""

    def __init__(
        self, rt: Runtime, lease: LeaseKeeper, limiters: Mapping[int, RateLimiter]
    ) -> None:
        self._rt = rt
        self._lease = lease
        self._limiters = limiters
        self._calls: dict[Attempt, _Call] = {}
        self._writers: set[asyncio.Task[None]] = set()
        self._moved = asyncio.Event()
        self._hurried = False

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def calling(self) -> frozenset[int]:
        """The parts whose call is under way here, or whose outcome is not recorded yet."""
        return frozenset(attempt.part for attempt in tuple(self._calls))

    def calls(self, part: int) -> bool:
        """Tell whether this part is in `calling`. May be asked from any thread."""
        return part in self.calling

    async def over(self, part: int, seconds: float) -> None:
        """Wait until no call of this part is under way, at most this many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for call in [c for c in self._calls.values() if c.part.id == part]:
                    await call.over.wait()

    @asynccontextmanager
    async def call(self, channel: Channel, to: Recipient, part: Part) -> AsyncIterator[Outcome]:
        """Send the part once; the body of the `async with` records the outcome.

        If the caller is cancelled during the call, or the body raises, this owner records the
        outcome instead, and the exception is passed on.
        """
        call = _Call(part)
        call.task = asyncio.create_task(self._send(call, channel, to), name=f"send-{part.id}")
        self._calls[call.attempt] = call
        try:
            yield await asyncio.shield(call.task)
        except BaseException:
            writer = asyncio.create_task(self._write_later(call), name=f"outcome-{part.id}")
            self._writers.add(writer)
            writer.add_done_callback(self._writers.discard)
            raise
        self._forget(call)

    async def finish(self, grace: float) -> None:
        """Wait for the calls that are under way, at most `grace` seconds, then give up on the rest
        and record their parts as uncertain. Raises DatabaseUnavailable."""
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while self._calls and not self._hurried:
                    self._moved.clear()
                    await self._moved.wait()
        for writer in tuple(self._writers):
            writer.cancel()
        for call in tuple(self._calls.values()):
            await self._write(call, await call.cut())
            self._forget(call)

    def hurry(self) -> None:
        """Stop waiting for calls: somebody asked this process a second time to stop."""
        self._hurried = True
        self._moved.set()

    def abandon(self) -> None:
        """Drop every call without recording anything, as the death of the process would."""
        for task in [*(c.task for c in self._calls.values()), *self._writers]:
            task.cancel()

    async def _send(self, call: _Call, channel: Channel, to: Recipient) -> Outcome:
        rt, part, alone = self._rt, call.part, call.part.standalone
        await rt.reached(Checkpoint.STANDALONE_BEFORE_SEND if alone else Checkpoint.BEFORE_SEND)
        await self._limiters[part.account].even_out()
        still_ours = partial(self._marked_by_us, part)
        if not still_ours():
            return NotSent("its holder's lease was over", retry_after=_PUT_OFF)
        STILL_OURS.set(still_ours)
        names = rt.names(part.account, part.chat)
        bind(run=part.run, part=part.id, **names)
        call.begun = True
        outcome: Outcome = NotSent("the call was never made", retry_after=_PUT_OFF)
        try:
            with _span(rt, part, names) as span:
                outcome = await self._ask(channel, to, part)
                _report(rt, channel, span, outcome)
        except Exception:  # noqa: BLE001 - a failing log or trace must not lose the outcome
            _log.exception("telling of the send of part %s broke", part.id)
        if isinstance(outcome, NotSent) and outcome.limited is not None:
            wait = outcome.retry_after or 0.0
            await self._limiters[part.account].refused(to, wait, outcome.limited)
        await rt.reached(Checkpoint.STANDALONE_AFTER_SEND if alone else Checkpoint.AFTER_SEND)
        return outcome

    def _marked_by_us(self, part: Part) -> bool:
        """Tell whether the holder that marked the part still has its lease. A later session of this
        process is another holder, and may have taken the part over."""
        try:
            return self._lease.holder() == part.holder
        except StaleLease:
            return False

    async def _ask(self, channel: Channel, to: Recipient, part: Part) -> Outcome:
        """Call the provider once. If it refuses for now and names no wait, ours grows with the
        attempts."""
        ref = SendRef(part.id, part.attempts, part.started_at)
        try:
            outcome = await channel.send(to, part.body, ref)
        except Exception as error:  # noqa: BLE001 - the call's edge: what it did is unknown
            _log.exception("sending part %s broke the channel", part.id)
            return Unknown(f"the channel broke: {type(error).__name__}")
        if isinstance(outcome, NotSent) and outcome.retry_after is None and not outcome.moved_to:
            wait = self._rt.retry.delivery.after(part.attempts, self._rt.clock.jitter())
            return replace(outcome, retry_after=wait)
        return outcome

    async def _write_later(self, call: _Call) -> None:
        """Record the outcome of a call whose turn is gone, however long the database is away."""
        outcome = await call.outcome()
        tries = 0
        while True:
            try:
                await self._write(call, outcome)
            except DatabaseUnavailable:
                pass
            except Exception:  # noqa: BLE001 - the task's edge: the part must not stay `sending`
                _log.exception("the outcome of part %s could not be written", call.part.id)
            else:
                self._forget(call)
                self._rt.wakeups.tell(READY)
                return
            tries += 1
            wait = self._rt.retry.database.after(tries, self._rt.clock.jitter())
            await self._rt.clock.sleep(wait)

    async def _write(self, call: _Call, outcome: Outcome) -> None:
        """Record the outcome, or that it is unknown. Raises DatabaseUnavailable."""
        try:
            doubled = await self._rt.db.write(record_alone, self._rt, call.part, outcome)
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - an outcome that can't be recorded is unknown
            _log.exception("the outcome of part %s broke its writing", call.part.id)
            reason = f"its outcome could not be written: {type(error).__name__}"
            await self._rt.db.write(_doubt, call.part.chat, call.attempt, reason)
            return
        alarm(self._rt, call.part.id, doubled=doubled)

    def _forget(self, call: _Call) -> None:
        """Drop a call whose outcome is recorded."""
        self._calls.pop(call.attempt, None)
        call.over.set()
        self._moved.set()


def _doubt(tx: Tx, chat: int, attempt: Attempt, reason: str) -> None:
    chats.lock(tx, chat)
    outbox.doubt(tx, attempt, reason)


def _span(rt: Runtime, part: Part, names: dict[str, Fact]) -> AbstractContextManager[Span]:
    """The span of one call to a provider, in the trace of its run."""
    story = "" if part.run is None else rt.story(part.account, part.run)
    facts = {"kind": part.kind.value, "number": part.number, "attempt": part.attempts, **names}
    return rt.tracer.span("send", story, part=part.id, **facts)


def _report(rt: Runtime, channel: Channel, span: Span, outcome: Outcome) -> None:
    """Log and count the provider's answer, by its code alone: its words may quote the message."""
    code = "" if isinstance(outcome, Sent) else outcome.code
    name = type(outcome).__name__
    span.tell(outcome=name, code=code)
    level = logging.DEBUG if isinstance(outcome, Sent) else logging.INFO
    _log.log(level, "the provider said: %s%s", name, f" ({code})" if code else "")
    rt.observer.sends.labels(channel.name, name).inc()
    if isinstance(outcome, NotSent) and outcome.limited is not None:
        rt.observer.limit_wait.labels(channel.name).observe(outcome.retry_after or 0.0)
