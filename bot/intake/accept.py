"""Taking a payload in: commit each event within two seconds, then give the hints that follow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext

from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import Edited, Event, Inbound, shortened
from bot.domain.run import RunState
from bot.intake.arrival import Arrival, Became, Entry, Recorded
from bot.intake.record import record_dead_letter, record_event
from bot.intake.together import record_together
from bot.leases.checkpoints import Checkpoint
from bot.leases.runtime import Runtime
from bot.observability.context import about
from bot.observability.tracing import story_of_request
from bot.runs.worker import Worker
from bot.supervisor import Supervisor
from storage.engine.lane import Lane
from storage.notify import READY, stop_topic

COMMIT_WITHIN = 1.8
"""Seconds within which an event is committed, or else its webhook is answered with 503."""

_BOUND = 2_000
"""Events that may wait for the database at once: more than it commits within that time."""

_log = logging.getLogger("answerback.intake")


class Intake:
    """Records what arrives at this process. `worker` is None in a process with the role `web`."""

    def __init__(self, rt: Runtime, worker: Worker | None, tasks: Supervisor) -> None:
        self._rt = rt
        self._worker = worker
        self._tasks = tasks
        self._lane: Lane[Entry, Recorded] = Lane(
            rt.db.write,
            lambda tx, entries: record_together(tx, rt, entries),
            lambda tx, entry: record_event(tx, rt, entry),
            lambda entry: entry.key,
            bound=_BOUND,
        )
        self.turned_away = 0
        """The number of payloads whose platform was told to deliver them again."""

    async def take(self, arrival: Arrival, events: Sequence[Event]) -> Sequence[Recorded]:
        """Commit every event of a payload. Raises DatabaseUnavailable: then the platform has to
        deliver it again, and events that were committed already are recognised as duplicates."""
        try:
            recorded = [await self._record_or_keep(arrival, event) for event in events]
        except DatabaseUnavailable:
            self.turned_away += 1
            raise
        await self._rt.reached(Checkpoint.MESSAGE_COMMITTED)
        return recorded

    async def take_dead_letter(self, arrival: Arrival, error: str) -> None:
        """Keep a payload that can't be parsed. Raises DatabaseUnavailable."""
        async with in_time():
            await self._rt.db.write(record_dead_letter, arrival, error)
        _log.warning("dead letter for account %s: %s", arrival.account, error)
        self._count(arrival, Became.DEAD_LETTER.value)

    async def _record_or_keep(self, arrival: Arrival, event: Event) -> Recorded:
        """Commit an event. If that fails three times although the database works, the event
        becomes a dead letter: its platform would otherwise deliver it for ever, and hold back
        what comes behind it."""
        for last in (False, False, True):
            try:
                return await self._record(arrival, event)
            except DatabaseUnavailable:
                raise
            except Exception as error:  # noqa: BLE001 - the payload's edge: see above
                name = type(error).__name__
                _log.error(
                    "an update of account %s was not recorded", arrival.account, exc_info=error
                )
                if last:
                    await self.take_dead_letter(arrival, f"could not be recorded: {name}")
        return Recorded(Became.DEAD_LETTER)

    async def _record(self, arrival: Arrival, event: Event) -> Recorded:
        """Commit an event, with its span and log line if anybody reads them."""
        rt, began = self._rt, self._rt.clock.monotonic()
        recorded = await self._commit(arrival, event)
        if rt.tracer.listens or _log.isEnabledFor(logging.DEBUG):
            self._tell(arrival, event, recorded, rt.clock.monotonic() - began)
        return recorded

    def _tell(self, arrival: Arrival, event: Event, recorded: Recorded, seconds: float) -> None:
        """Write the span of an event, and a log line that names its request."""
        rt, run, became = self._rt, recorded.run, recorded.became.value
        about_message = event.message if isinstance(event, Edited) else event
        request = about_message.request_id if isinstance(about_message, Inbound) else None
        account = rt.channels[arrival.account].account
        story = story_of_request(account, request or arrival.digest)
        names = rt.names(arrival.account)
        if run is not None:
            story = rt.story(run.account, run.id)
            names = {**rt.names(run.account, run.chat), "run": run.id}
        with about(request_id=request, **names):
            _log.debug("recorded: %s", became)
        rt.tracer.first(arrival.via, story, seconds, became=became, **names)

    async def _commit(self, arrival: Arrival, event: Event) -> Recorded:
        worker = self._worker
        room = nullcontext() if worker is None else worker.places.reserved()
        with room as by:
            async with in_time():
                recorded = await self._lane.do(Entry(arrival, event, by))
        run = recorded.run
        if worker is not None and run is not None and run.state is RunState.RUNNING:
            worker.take(run, recorded.case)
        self._count(arrival, recorded.became.value)
        self._follow(arrival, recorded)
        return recorded

    def _follow(self, arrival: Arrival, recorded: Recorded) -> None:
        """Give hints after the commit. Correctness depends on none of them."""
        if recorded.report:
            _log.warning("the platform reports of %s", shortened(recorded.report))
        if recorded.wake:
            self._rt.wakeups.tell(READY)
        for run in recorded.stopped:
            self._rt.wakeups.tell(stop_topic(run))
        if recorded.callback_id and recorded.became is not Became.DUPLICATE:
            channel = self._rt.channels[arrival.account]
            acknowledging = channel.acknowledge(recorded.callback_id, recorded.toast)
            self._tasks.once(f"acknowledge-{arrival.account}", acknowledging)

    def _count(self, arrival: Arrival, outcome: str) -> None:
        channel = self._rt.channels[arrival.account]
        self._rt.observer.inbound.labels(channel.name, outcome).inc()


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Turn a commit that takes too long into DatabaseUnavailable. It may still succeed later: the
    next delivery of the payload then finds it recorded."""
    try:
        async with asyncio.timeout(COMMIT_WITHIN):
            yield
    except TimeoutError as late:
        raise DatabaseUnavailable("the database took too long") from late
