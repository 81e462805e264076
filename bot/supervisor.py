"""The owner of a process's background tasks: failures are tried again, the end of one is named.

A task here is a step that is repeated. A database that is away and a lease that was lost are
ordinary: the next step comes at its usual time. Any other error is logged under the task's name
and backed off, however often it comes; from the third in a row on the task counts as troubled,
and so does one that ended although nobody stopped it. Readiness and metrics tell of both.

Waits are counted on clocks that nobody can set: `Clock.sleep`, or the loop's own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from bot.domain.decisions.retry import RETRY
from bot.domain.errors import DatabaseUnavailable, StaleLease
from bot.domain.ports import Clock

Step = Callable[[], Awaitable[float | None]]
"""Work that is done once per call. Returns the seconds until the next call; None ends the task."""

T = TypeVar("T")

_TROUBLED_FROM = 3
"""Errors in a row after which a task counts as troubled. Tracebacks are only logged before that."""

_log = logging.getLogger("answerback.tasks")


@dataclass(frozen=True, slots=True)
class _Task:
    """A step and its pauses: `usual` seconds after an ordinary error, at most `longest` after
    any other."""

    name: str
    step: Step
    pause: Callable[[float], Awaitable[None]]
    usual: float
    longest: float


class Supervisor:
    """Runs named tasks until it is stopped."""

    def __init__(self, clock: Clock) -> None:
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._clock = clock
        self._once: set[asyncio.Task[None]] = set()
        self.troubled: dict[str, str] = {}
        """The tasks that are over or keep failing, each with its trouble in words."""
        self._stopped = False

    def every(
        self,
        name: str,
        seconds: float,
        work: Callable[[], Awaitable[object]],
        *,
        vital: bool = False,
    ) -> None:
        """Do `work` every `seconds`, counted from beginning to beginning; for the first time after
        one interval, and never twice at once. After errors, a `vital` one is not put off longer."""

        async def step() -> float:
            began = self._clock.monotonic()
            await work()
            return max(0.0, began + seconds - self._clock.monotonic())

        longest = seconds if vital else RETRY.task.cap
        self._start(_Task(name, step, self._clock.sleep, seconds, longest), first=seconds)

    def repeat(
        self, name: str, step: Step, *, usual: float, hint: asyncio.Event | None = None
    ) -> None:
        """Repeat `step`, for the first time at once: again after the seconds that it returns
        (`usual` after an ordinary error), or as soon as `hint` is set."""
        pause = self._clock.sleep if hint is None else partial(_hinted, hint)
        self._start(_Task(name, step, pause, usual, RETRY.task.cap), first=0.0)

    def once(self, name: str, work: Coroutine[None, None, None]) -> None:
        """Run `work` to its end; an error is logged."""
        task = asyncio.create_task(work, name=name)
        self._once.add(task)
        task.add_done_callback(self._once.discard)
        task.add_done_callback(log_error)

    async def finish(self, seconds: float) -> None:
        """Wait for the tasks that run once, at most this many seconds."""
        if self._once:
            await asyncio.wait(self._once, timeout=seconds)

    def cancel(self) -> None:
        """Cancel every task."""
        self._stopped = True
        for task in (*self.tasks.values(), *self._once):
            task.cancel()

    async def stop(self) -> None:
        """Cancel every task and wait for their ends."""
        self.cancel()
        await asyncio.gather(*self.tasks.values(), *self._once, return_exceptions=True)

    def _start(self, job: _Task, first: float) -> None:
        self.tasks[job.name] = task = asyncio.create_task(self._repeat(job, first), name=job.name)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        if self._stopped or not (task.cancelled() or task.exception()):
            return
        self.troubled[task.get_name()] = "is over"
        error = None if task.cancelled() else task.exception()
        _log.error("the %s task is over", task.get_name(), exc_info=error)

    async def _repeat(self, job: _Task, first: float) -> None:
        wait: float | None = first
        failures, away = 0, False
        while wait is not None:
            await job.pause(wait)
            try:
                wait = await job.step()
            except (DatabaseUnavailable, StaleLease) as error:
                _log.log(logging.DEBUG if away else logging.WARNING, "%s: %s", job.name, error)
                wait, away = job.usual, True
            except Exception as error:  # noqa: BLE001 - the task's edge: it must go on
                failures += 1
                wait = min(job.longest, RETRY.task.after(failures, self._clock.jitter()))
                self._failed(job.name, failures, wait, error)
            else:
                if failures or away:
                    _log.info("%s: works again", job.name)
                failures, away = 0, False
                self.troubled.pop(job.name, None)

    def _failed(self, name: str, failures: int, wait: float, error: Exception) -> None:
        trouble = f"failed {failures} times in a row, with {type(error).__name__}"
        if failures < _TROUBLED_FROM:
            _log.error("%s: %s; again in %.1f s", name, trouble, wait, exc_info=error)
        else:
            self.troubled[name] = trouble
            _log.error("%s: %s; again in %.1f s", name, trouble, wait)


@asynccontextmanager
async def beside(name: str, work: Coroutine[None, None, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run `work` while the body runs, and cancel it then. Its error is logged under `name` and
    never becomes the body's, unless the body asks the task for its result."""
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        task.cancel()
        # Not awaited directly: its cancellation would look like our own.
        await asyncio.wait((task,))
    log_error(task)


def log_error(task: asyncio.Task[T]) -> None:
    """Log the error that ended a task, if one did."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("the %s task broke", task.get_name(), exc_info=error)


async def _hinted(hint: asyncio.Event, seconds: float) -> None:
    """Return when `hint` is set, at the latest after `seconds`. A hint that comes later counts for
    the next call."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await hint.wait()
    hint.clear()
