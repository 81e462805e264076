"""A loop that is blocked is told from a process that is stopped, and its cause is named."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from bot.loop_watchdog import LoopWatchdog

BEAT = 0.01
LONG = 60.0
"""A beat that no test lives to see: it looks by itself."""


async def test_a_loop_that_moves_did_not_stand_still() -> None:
    pulse = LoopWatchdog(LONG)
    for _ in range(30):
        await asyncio.to_thread(pulse._look)
    assert pulse.stood() == 0.0


async def test_the_longest_standstill_is_told_once() -> None:
    pulse = LoopWatchdog(LONG)
    for looks in (4, 3):  # The first look of each asks the loop, the others see no answer.
        for _ in range(looks):
            pulse._look()
        await asyncio.to_thread(pulse._look)
        await asyncio.to_thread(pulse._look)
    assert pulse.stood() == 4 * LONG
    assert pulse.stood() == 0.0


async def test_what_blocks_the_loop_is_measured_and_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.loop_watchdog._WORTH_A_WORD", 5 * BEAT)
    block = threading.Event()  # Waiting for it, without awaiting, is what a careless agent does.
    with LoopWatchdog(BEAT) as pulse, caplog.at_level(logging.ERROR):
        while not caplog.messages:
            block.wait(BEAT)
    assert pulse.stood() >= 5 * BEAT
    assert f"{__name__}:" in caplog.messages[0]


async def test_it_ends_when_it_is_told_to() -> None:
    with LoopWatchdog(BEAT):
        pass
    assert "loop-watchdog" not in {thread.name for thread in threading.enumerate()}
