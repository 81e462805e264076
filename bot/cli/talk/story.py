"""The story of a demonstration, as the command line tells it."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp

from bot.cli.output import render
from bot.cli.session import DONE, NOT_DONE, CommandFailed
from bot.operations.demonstration import DemonstrationFailed, Shown
from bot.wiring.demonstration import kill_one

_STOPPED = 130
"""The exit code of a program that was ended by Ctrl-C."""
_MARGIN = 9
"""Columns of the time at the beginning of each moment's line."""
_LEAST, _PIPED = 20, 240
"""The least columns for words, and the columns of a line where there is no terminal."""


def tell_kill(seconds: float, within: float) -> int:
    """Kill a process in the middle of a turn, and tell what happens. Returns the exit code. Raises
    CommandFailed."""
    try:
        folder = Path(mkdtemp(prefix="answerback-demo-")).resolve()
    except OSError as error:
        raise CommandFailed(f"it could not be shown: {error}") from error
    shown = None
    try:
        shown = asyncio.run(_interruptible(folder, seconds, within))
    except DemonstrationFailed as error:
        raise CommandFailed(f"it could not be shown: {error}") from error
    except TimeoutError as error:
        said = f"it was not over within {within:g} s: this machine is busy; --within gives it more"
        raise CommandFailed(said) from error
    except (asyncio.CancelledError, KeyboardInterrupt) as error:
        raise CommandFailed("stopped; what it had started is gone", _STOPPED) from error
    finally:
        if shown is None or shown.held:
            shutil.rmtree(folder, ignore_errors=True)
    render.lines(_summary(shown, folder))
    return DONE if shown.held else NOT_DONE


async def _interruptible(folder: Path, seconds: float, within: float) -> Shown:
    """Run the demonstration. On SIGTERM it is cancelled, so that its processes are ended first."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with asyncio.timeout(within):
        return await kill_one(folder, seconds, _tell)


def _tell(at: float, said: str) -> None:
    """Print a moment of the story, in lines that fit the terminal."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPED
    room = max(_LEAST, columns - _MARGIN - 1)
    texts = [line for text in said.splitlines() for line in textwrap.wrap(text, room)]
    margins = [f"{at:5.1f} s  ", *([" " * _MARGIN] * len(texts))]
    render.lines([margin + text for margin, text in zip(margins, texts, strict=False)])
    sys.stdout.flush()


def _summary(shown: Shown, folder: Path) -> Sequence[str]:
    told = [
        "",
        "The database says:",
        f"  deliveries of the message         {shown.deliveries}",
        f"  claims of its run                 {shown.claims} (each process its own)",
        f"  times the paid step was begun     {shown.paid}",
        f"  answers with a receipt            {shown.answers}",
    ]
    if shown.held:
        return [*told, "One message, one answer, paid for once: the promise held."]
    return [*told, f"The promise did not hold. The database is kept: {folder}/answerback.db"]
