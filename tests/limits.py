"""The patience of tests, and a way to wait for what gives no event."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, overload

T = TypeVar("T")
PATIENCE = 120.0
"""Seconds that a test waits for what must happen: no test fails because a machine is slow."""
_BETWEEN_LOOKS = 0.02
"""Seconds. A look asks a database or a process, which costs as much as a step of what is waited
for: whoever waits for long looks less often."""
_BETWEEN_LATE_LOOKS = 0.1


@overload
async def until(holds: Callable[[], Coroutine[Any, Any, T]], patience: float = PATIENCE) -> T: ...
@overload
async def until(holds: Callable[[], T], patience: float = PATIENCE) -> T: ...
async def until(holds: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Look until there is something true, and return it. Raises TimeoutError."""
    pause = _BETWEEN_LOOKS
    async with asyncio.timeout(patience):
        while True:
            found = holds()
            if inspect.isawaitable(found):
                found = await found
            if found:
                return found
            await moment(pause)
            pause = min(1.2 * pause, _BETWEEN_LATE_LOOKS)


async def moment(seconds: float = _BETWEEN_LOOKS) -> None:
    """Let others go on, before one looks again."""
    try:
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()
    except TimeoutError:
        return
