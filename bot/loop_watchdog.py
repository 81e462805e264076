"""A watchdog that notices when something blocks the event loop.

A stopped process, a machine that slept and a clock that was set all look alike from inside the
loop. A thread tells them apart: it counts its own beats, and a process that is stopped has none.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from itertools import islice
from traceback import walk_stack
from typing import Self

BEAT = 0.25
"""Seconds between two looks."""

_WORTH_A_WORD = 2.0
"""Seconds of standstill after which the log says where."""

_FRAMES = 4

_log = logging.getLogger("answerback.loop")


class LoopWatchdog:
    """Watches the loop in which it was made, until the body ends."""

    def __init__(self, beat: float = BEAT) -> None:
        self._beat = beat
        self._loop = asyncio.get_running_loop()
        self._of = threading.get_ident()
        self._answered = threading.Event()
        self._answered.set()
        self._missed = 0
        self._longest = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="loop-watchdog")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def stood(self) -> float:
        """The longest standstill, in seconds, since the last call."""
        longest, self._longest = self._longest, 0
        return longest * self._beat

    def _watch(self) -> None:
        while not self._ended.wait(self._beat):
            try:
                self._look()
            except RuntimeError:
                return  # The loop is closed.

    def _look(self) -> None:
        if self._answered.is_set():
            self._missed = 0
            self._answered.clear()
            self._loop.call_soon_threadsafe(self._answered.set)
            return
        self._missed += 1
        self._longest = max(self._longest, self._missed)
        if self._missed == round(_WORTH_A_WORD / self._beat):
            _log.error(
                "nothing moves, because this blocks the loop: %s; an agent that blocks "
                "must be a plain function",
                self._where(),
            )

    def _where(self) -> str:
        """The innermost calls of the loop's thread: names and lines, never values."""
        stack = walk_stack(sys._current_frames().get(self._of))  # noqa: SLF001 - its only name
        inner = [f"{f.f_globals.get('__name__')}:{line}" for f, line in islice(stack, _FRAMES)]
        return " < ".join(inner)
