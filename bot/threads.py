"""Blocking functions in threads beside the event loop.

Not an executor: its threads are joined when the interpreter exits, so that one function
that blocks for ever would hold the process past its grace. These are daemons, one a call.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Threads:
    """At most `limit` calls at a time, each with the caller's context variables.

    A cancelled call is abandoned: its thread runs on unseen, its `wait()`s are cancelled,
    and it keeps its place among the `limit` until it ends, since it still costs a thread.
    """

    def __init__(self, limit: int) -> None:
        self._places = asyncio.Semaphore(limit)

    async def run(self, call: Callable[[], T]) -> T:
        """The result of `call`. An exit or another non-error becomes a RuntimeError."""
        await self._places.acquire()
        work = _Work(call, asyncio.get_running_loop(), self._places.release)
        context = contextvars.copy_context()
        context.run(_CURRENT.set, work)
        thread = threading.Thread(target=context.run, args=(work.do,), daemon=True, name="agent")
        try:
            thread.start()
        except RuntimeError:
            self._places.release()
            raise
        try:
            return await work.outcome
        except asyncio.CancelledError:
            work.abandon()
            raise


def wait(awaitable: Awaitable[U]) -> U:
    """In a plain function agent: what `await awaitable` would give in an `async def` one.

        order = wait(turn.step("order", place_order))

    Raises concurrent.futures.CancelledError once the turn was stopped or its process leaves.
    """
    work = _CURRENT.get()
    if work is None or work.thread != threading.get_ident():
        _discard(awaitable)
        raise RuntimeError(
            "wait() works only in the thread of a plain function agent; "
            "in an async function write await instead"
        )
    return work.wait(awaitable)


class _Work(Generic[T]):
    """One call in its thread, and the loop that waits for it."""

    def __init__(
        self, call: Callable[[], T], loop: asyncio.AbstractEventLoop, ended: Callable[[], None]
    ) -> None:
        self.outcome: asyncio.Future[T] = loop.create_future()
        self.thread = 0
        self._call = call
        self._loop = loop
        self._ended = ended
        self._lock = threading.Lock()
        self._waiting: concurrent.futures.Future[Any] | None = None
        self._abandoned = False

    def do(self) -> None:
        self.thread = threading.get_ident()
        try:
            result = self._call()
        except BaseException as error:  # noqa: BLE001 - the task boundary of this thread
            settle = partial(self.outcome.set_exception, _as_error(error))
        else:
            settle = partial(self.outcome.set_result, result)

        def ended() -> None:
            self._ended()
            if not self.outcome.done():
                settle()

        with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._loop.call_soon_threadsafe(ended)

    def wait(self, awaitable: Awaitable[U]) -> U:
        with self._lock:
            if self._abandoned:
                _discard(awaitable)
                raise concurrent.futures.CancelledError
            waiting = asyncio.run_coroutine_threadsafe(_awaited(awaitable), self._loop)
            self._waiting = waiting
        return waiting.result()

    def abandon(self) -> None:
        with self._lock:
            self._abandoned = True
            if self._waiting is not None:
                self._waiting.cancel()


def _as_error(error: BaseException) -> Exception:
    """The error as a future can carry it: no exit, no StopIteration."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    failure = RuntimeError(f"the function ended with {type(error).__name__}")
    failure.__cause__ = error
    return failure


def _discard(awaitable: Awaitable[Any]) -> None:
    """Spare the author the warning that it was never awaited: the error says more."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()


async def _awaited(awaitable: Awaitable[U]) -> U:
    return await awaitable


_CURRENT: contextvars.ContextVar[_Work[Any] | None] = contextvars.ContextVar("work", default=None)
