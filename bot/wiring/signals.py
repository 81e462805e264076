"""What a signal means to a running process."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from bot.wiring.process import Process

_log = logging.getLogger("answerback")


@contextmanager
def stop_signals(process: Process) -> Iterator[asyncio.Event]:
    """An event that SIGTERM or SIGINT sets; a second signal ends the waiting at once."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def told() -> None:
        if stop.is_set():
            _log.warning("told again: giving back at once")
            if process.worker is not None:
                process.worker.abandon()
            process.desk.sends.hurry()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told)
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
