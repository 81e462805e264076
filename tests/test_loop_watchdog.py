"""A loop that is blocked is told from a process that is stopped, and its cause is named."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from bot.loop_watchdog import LoopWatchdog

BEAT = 0.01


@pytest.fixture
def block() -> threading.Event:
    """Waiting for it, without awaiting, is what a careless agent does."""
    return threading.Event()


async def test_a_loop_that_moves_did_not_stand_still(block: threading.Event) -> None:
    with LoopWatchdog(BEAT) as pulse:
        await asyncio.to_thread(block.wait, 30 * BEAT)
    assert pulse.stood() < 15 * BEAT


async def test_what_blocks_the_loop_is_measured_and_named(
    block: threading.Event, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.loop_watchdog._WORTH_A_WORD", 5 * BEAT)
    with LoopWatchdog(BEAT) as pulse, caplog.at_level(logging.ERROR):
        block.wait(60 * BEAT)
    assert pulse.stood() > 10 * BEAT
    assert pulse.stood() == 0.0, "each standstill is told once"
    assert f"{__name__}:" in caplog.messages[0]


async def test_it_ends_when_it_is_told_to() -> None:
    with LoopWatchdog(BEAT):
        pass
    assert "loop-watchdog" not in {thread.name for thread in threading.enumerate()}
