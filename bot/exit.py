"""Leave the program: although tasks of foreign code go on, and not before it was told to."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress

from bot.lazy_imports import lazy_imports

with lazy_imports(__name__):
    import asyncio

_PATIENCE = 1.0
"""Seconds in which what is left may end by itself."""

_log = logging.getLogger("answerback")


async def to_the_end(program: Coroutine[object, object, None]) -> None:
    """Run `program`, which closes what it opened, and leave with code 0.

    A loop waits for each of its tasks before it closes. One of an agent that ignores its
    cancellation would hold the process for ever, so that is left without a goodbye.
    """
    await program
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if not rest:
        return
    _, stubborn = await asyncio.wait(rest, timeout=_PATIENCE)
    if stubborn:
        _log.error("left without %d tasks that go on although they were cancelled", len(stubborn))
        logging.shutdown()
        os._exit(0)


async def linger(seconds: float, listens: Callable[[], None]) -> None:
    """Do nothing for so long, or until told to stop, which it `listens` for. The first process of a
    container is not ended by a signal that it does not ask for."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    listens()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await told.wait()
