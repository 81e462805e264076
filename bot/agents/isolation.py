"""Keeps what a foreign coroutine does to its task away from ours."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 1.0
"""Seconds in which a cancelled coroutine may still tidy up before it is left alone."""

_abandoned: set[asyncio.Task[Any]] = set()
"""Tasks that go on although they were cancelled. A loop keeps no task alive by itself: one
that nobody owns would be destroyed at some collection of garbage, in the middle of its work."""

_log = logging.getLogger("answerback.agents")


async def contained(name: str, work: Awaitable[T]) -> T:
    """The result of `work`, which runs in a task of its own.

    A cancelled one that goes on regardless is abandoned: it runs on unseen, and whatever it
    still gives counts for nothing. An exit, an interrupt, or a cancellation that nobody asked
    for would end this process or this task; each becomes a RuntimeError.
    """
    task = asyncio.create_task(_tame(name, work))
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        task.add_done_callback(_look_away)
        await asyncio.wait({task}, timeout=PATIENCE)
        if not task.done():
            _abandoned.add(task)
            task.add_done_callback(_abandoned.discard)
            _log.error("%s goes on although it was cancelled; it is left alone", name)
        raise
    if task.cancelled():
        raise RuntimeError(f"{name} cancelled itself")
    return task.result()


async def _tame(name: str, work: Awaitable[T]) -> T:
    try:
        return await work
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        raise RuntimeError(f"{name} ended with {type(error).__name__}") from error


def _look_away(task: asyncio.Task[T]) -> None:
    """Take the error of an abandoned task, so that nobody is told of one never retrieved."""
    if not task.cancelled():
        task.exception()
