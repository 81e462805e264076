"""The only reader of time and entropy."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from functools import cache
from pathlib import Path

from bot.domain.ports import UNKNOWN_BOOT

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class SystemClock:
    """`Clock` on this machine."""

    def wall(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.clock_gettime(_SINCE_BOOT)

    def boot(self) -> tuple[str, float]:
        return _boot_id(), time.clock_gettime(_SINCE_BOOT)

    def jitter(self) -> float:
        return random.random()

    def token(self) -> str:
        return uuid.uuid4().hex

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


# Counts suspended time where the system can (Linux): a laptop's lid must not keep a lease.
_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@cache
def _boot_id() -> str:
    """The id of this boot. A system that tells none has one name for all its boots: there
    the lock on the holder's name is what declares an earlier boot dead."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return UNKNOWN_BOOT
