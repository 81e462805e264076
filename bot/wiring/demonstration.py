"""The demonstration, wired: our own program, an empty folder, and nothing of the user's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bot.agents.demo import PAY, SHARES, WRITE
from bot.clock import SystemClock
from bot.operations.demonstration import Shown, Stage, demonstrate
from storage.engine.database import Database, DatabaseSettings

_ROOT = Path(__file__).parents[2]


async def kill_one(folder: Path, seconds: float, tell: Callable[[float, str], None]) -> Shown:
    """Show it in this empty folder, an absolute path, with an agent that works so many seconds.
    `tell` hears what happens, and after how many seconds. Raises DemonstrationFailed."""
    clock = SystemClock()
    began = clock.monotonic()
    url = f"sqlite:///{folder}/answerback.db"
    stage = Stage(
        clock=clock,
        db=partial(Database, DatabaseSettings(url, pool=1), clock),
        folder=folder,
        program=(sys.executable, "-m", "bot.cli", "up"),
        environment={
            "PATH": os.defpath,
            "HOME": str(folder),
            "PYTHONPATH": str(_ROOT),
            "DATABASE_URL": url,
            "AGENT": "demo",
            "DEMO_SECONDS": str(seconds),
            "PORT": "0",
        },
        paid=PAY,
        killed_in=WRITE,
        seconds=seconds * SHARES[WRITE],
    )
    return await demonstrate(stage, lambda said: tell(clock.monotonic() - began, said))
