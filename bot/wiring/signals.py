"""Signals: the first begins the hand-over, the second ends the waiting."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from bot.wiring.process import Process

_log = logging.getLogger("answerback")
_STOPS = (signal.SIGTERM, signal.SIGINT)


@dataclass
class Stop:
    """The order to stop this process. `process` is None until it works."""

    task: asyncio.Task[None]
    told: asyncio.Event = field(default_factory=asyncio.Event)
    process: Process | None = None

    def works(self, process: Process) -> None:
        """From now on a signal begins the hand-over; before, it ends the start."""
        self.process = process
        # A process that can't write is of no use: whoever runs it starts it anew.
        process.rt.db.on_broken = partial(signal.raise_signal, signal.SIGTERM)

    def tell(self) -> None:
        """A signal came. The first one begins to stop, a later one ends the waiting."""
        again = self.told.is_set()
        self.told.set()
        if self.process is None:
            self.task.cancel()
        elif again:
            _log.warning("told again: giving back at once")
            if self.process.worker is not None:
                self.process.worker.abandon()
            self.process.ctx.sends.hurry()


@contextmanager
def stop_signals() -> Iterator[Stop]:
    """SIGTERM and SIGINT tell the `Stop`. One that comes while the body still starts ends the
    body, quietly: nothing was begun that would need an end."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    stop = Stop(task)
    for number in _STOPS:
        loop.add_signal_handler(number, stop.tell)
    try:
        yield stop
    except asyncio.CancelledError:
        if stop.process is not None or not stop.told.is_set():
            raise
        task.uncancel()
        _log.info("told to stop while starting")
    finally:
        for number in _STOPS:
            loop.remove_signal_handler(number)
